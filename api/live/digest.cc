#include "api/live/digest.h"

#include <sodium.h>

#include <cstdlib>
#include <span>

#include "store/model/hex.h"

namespace conversed::api {
namespace {

Digest hash(std::span<const std::uint8_t> key, std::initializer_list<std::string_view> parts) {
  // This fails only if the library can't be initialized. The daemon can't run without it.
  if (sodium_init() < 0) std::abort();
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), Digest{}.size());
  for (const std::string_view part : parts) {
    const std::uint64_t size = part.size();
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&size), sizeof size);
    crypto_generichash_update(&state, model::bytes_of(part), part.size());
  }
  Digest result{};
  crypto_generichash_final(&state, result.data(), result.size());
  return result;
}

}  // namespace

Digest digest(std::initializer_list<std::string_view> parts) {
  return hash({}, parts);
}

KeyedDigest::KeyedDigest() {
  if (sodium_init() < 0) std::abort();
  randombytes_buf(key_.data(), key_.size());
}

std::string KeyedDigest::operator()(std::initializer_list<std::string_view> parts) const {
  const Digest result = hash(key_, parts);
  return {reinterpret_cast<const char*>(result.data()), result.size()};
}

}  // namespace conversed::api
