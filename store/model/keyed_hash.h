#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace conversed::model {

// Sixteen bytes that must be secret from users who choose the hashed texts.
struct HashKey {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// SipHash-2-4 of the bytes.
[[nodiscard]] std::uint64_t sip_hash(std::string_view bytes, HashKey key);

// For hash tables whose keys come from users, such as ids of sessions or members of JSON. The key
// is random for each process, so users can't choose texts that fall into one bucket and slow down
// each look-up. For `std::unordered_map<std::string, T, KeyedHash, std::equal_to<>>`, which takes
// string_views as well.
struct KeyedHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const;
};

// A fifth of the cost of KeyedHash, for tables whose keys users can't choose, and to choose one of
// several tables.
struct FastHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

}  // namespace conversed::model
