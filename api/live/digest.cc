#include "api/live/digest.h"

#include <sodium.h>

#include <cstdlib>

namespace conversed::api {
namespace {

void begin(crypto_generichash_state& state, const std::uint8_t* key, std::size_t key_size) {
  // Only fails where the library can't be initialised at all, which is no state to run in.
  if (sodium_init() < 0) std::abort();
  crypto_generichash_init(&state, key, key_size, Digest{}.size());
}

void add(crypto_generichash_state& state, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    const std::uint64_t size = part.size();
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&size), sizeof size);
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()),
                              part.size());
  }
}

}  // namespace

Digest digest(std::initializer_list<std::string_view> parts) {
  crypto_generichash_state state;
  begin(state, nullptr, 0);
  add(state, parts);
  Digest result{};
  crypto_generichash_final(&state, result.data(), result.size());
  return result;
}

KeyedDigest::KeyedDigest() {
  if (sodium_init() < 0) std::abort();
  randombytes_buf(key_.data(), key_.size());
}

std::string KeyedDigest::operator()(std::initializer_list<std::string_view> parts) const {
  crypto_generichash_state state;
  begin(state, key_.data(), key_.size());
  add(state, parts);
  Digest result{};
  crypto_generichash_final(&state, result.data(), result.size());
  return {reinterpret_cast<const char*>(result.data()), result.size()};
}

}  // namespace conversed::api
