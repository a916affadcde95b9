#include "api/auth/pkce.h"

#include <algorithm>

#include "api/http/http_syntax.h"
#include "store/text/base64.h"

namespace conversed::api {
namespace {

constexpr std::size_t min_verifier = 43;
constexpr std::size_t max_verifier = 128;
constexpr std::size_t hash_bytes = 32;

}  // namespace

std::optional<std::string> pkce_challenge(std::string_view verifier) {
  if (verifier.size() < min_verifier || verifier.size() > max_verifier ||
      !std::ranges::all_of(verifier, is_unreserved)) {
    return std::nullopt;
  }
  return text::sha256_in_base64(verifier, text::Base64::url);
}

bool is_pkce_challenge(std::string_view text) {
  const auto bytes = text::decode_base64(text, text::Base64::url);
  return bytes && bytes->size() == hash_bytes;
}

}  // namespace conversed::api
