#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace conversed {

// Texts of 16 bytes with one hash by `std::hash<std::string_view>` of libstdc++ (MurmurHash64A with
// a known seed): the second half undoes the changes of the first.
inline std::vector<std::string> colliding_keys(std::size_t count) {
  constexpr std::uint64_t factor = 0xc6a4a7935bd1e995;
  constexpr std::uint64_t seed = 0xc70f6907;
  const auto mix = [](std::uint64_t value) { return value ^ (value >> 47); };  // its own inverse
  std::uint64_t inverse = factor;  // of `factor`, by Newton's method
  for (int round = 0; round < 6; ++round) inverse *= 2 - factor * inverse;
  std::vector<std::string> keys;
  for (std::uint64_t first = 0; first < count; ++first) {
    const std::uint64_t half = (seed ^ (16 * factor) ^ (mix(first * factor) * factor)) * factor;
    const std::uint64_t second = mix(half * inverse) * inverse;
    std::string key(16, '\0');
    std::memcpy(key.data(), &first, sizeof(first));
    std::memcpy(key.data() + sizeof(first), &second, sizeof(second));
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace conversed
