#pragma once

#include <string>
#include <string_view>

// Secrets that the daemon makes: API keys, and the secrets, codes and tokens of OAuth. For .cc
// files of store/ only.
namespace conversed::store {

inline constexpr std::size_t random_secret_bytes = 32;
inline constexpr std::size_t random_secret_length = 2 * random_secret_bytes;  // in hex

// The stored hash of a secret: BLAKE2b in hex. A fast hash is enough: the secret has 256 random
// bits.
[[nodiscard]] std::string hash_of_secret(std::string_view secret);

// Compares in a time that does not depend on where they differ.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b);

}  // namespace conversed::store
