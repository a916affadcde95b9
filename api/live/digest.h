#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace conversed::api {

using Digest = std::array<std::uint8_t, 32>;

// BLAKE2b of the parts, each preceded by its length, so that ("ab","c") differs from ("a","bc").
[[nodiscard]] Digest digest(std::initializer_list<std::string_view> parts);

// Digests under a random key of this process. Caches name secrets by them, so that neither memory
// dumps nor timing reveal the secrets. Immutable, hence thread-safe.
class KeyedDigest {
 public:
  KeyedDigest();
  [[nodiscard]] std::string operator()(std::initializer_list<std::string_view> parts) const;

 private:
  std::array<std::uint8_t, 32> key_{};
};

}  // namespace conversed::api
