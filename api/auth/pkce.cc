#include "api/auth/pkce.h"

#include <sodium.h>

#include <algorithm>
#include <array>

#include "api/auth/base64.h"

namespace conversed::api {
namespace {

constexpr std::size_t min_verifier = 43;
constexpr std::size_t max_verifier = 128;

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::optional<std::string> pkce_challenge(std::string_view verifier) {
  if (verifier.size() < min_verifier || verifier.size() > max_verifier ||
      !std::all_of(verifier.begin(), verifier.end(), is_unreserved)) {
    return std::nullopt;
  }
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(verifier.data()),
                     verifier.size());
  return encode_base64({reinterpret_cast<const char*>(hash.data()), hash.size()}, Base64::url);
}

bool is_pkce_challenge(std::string_view text) {
  const auto bytes = decode_base64(text, Base64::url);
  return bytes && bytes->size() == crypto_hash_sha256_BYTES;
}

}  // namespace conversed::api
