#include "store/model/keyed_hash.h"

#include <sodium.h>

#include <array>
#include <cstring>
#include <random>

#include "store/model/hex.h"

namespace conversed::model {

std::uint64_t sip_hash(std::string_view bytes, HashKey key) {
  std::array<unsigned char, crypto_shorthash_KEYBYTES> secret{};
  static_assert(sizeof(key) == sizeof(secret));
  std::memcpy(secret.data(), &key, sizeof(key));
  std::uint64_t sum = 0;
  static_assert(sizeof(sum) == crypto_shorthash_BYTES);
  crypto_shorthash(reinterpret_cast<unsigned char*>(&sum), bytes_of(bytes), bytes.size(),
                   secret.data());
  return sum;
}

std::size_t KeyedHash::operator()(std::string_view text) const {
  static const HashKey key = [] {
    std::random_device random;
    const auto draw = [&] { return (std::uint64_t{random()} << 32) | random(); };
    return HashKey{draw(), draw()};
  }();
  return static_cast<std::size_t>(sip_hash(text, key));
}

}  // namespace conversed::model
