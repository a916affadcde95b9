#include "store/secrets/secrets.h"

#include <sodium.h>

#include <array>

#include "store/model/hex.h"

namespace conversed::store {

std::string hash_of_secret(std::string_view secret) {
  std::array<unsigned char, 32> hash{};
  crypto_generichash(hash.data(), hash.size(), model::bytes_of(secret), secret.size(), nullptr, 0);
  return model::hex(hash);
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace conversed::store
