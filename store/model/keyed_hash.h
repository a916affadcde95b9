#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace conversed::model {

// Sixteen bytes that those who choose the hashed texts must not know.
struct HashKey {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// SipHash-2-4 of the bytes.
[[nodiscard]] std::uint64_t sip_hash(std::string_view bytes, HashKey key);

// For hash tables whose keys come from users, such as the ids of sessions or the members of JSON:
// under a key that is drawn at the start of the process, nobody can choose texts that fall into one
// bucket and make each look-up walk through all of them. For `std::unordered_map<std::string, T,
// KeyedHash, std::equal_to<>>`, which takes string_views as well.
struct KeyedHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const;
};

}  // namespace conversed::model
