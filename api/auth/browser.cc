#include "api/auth/browser.h"

#include <sodium.h>

#include <algorithm>
#include <array>

#include "api/auth/base64.h"

namespace conversed::api {
namespace {

bool same_ignoring_case(std::string_view a, std::string_view b) {
  const auto folded = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return folded(x) == folded(y); });
}

}  // namespace

std::string csp_source(std::string_view inline_text) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(inline_text.data()),
                     inline_text.size());
  return "'sha256-" +
         encode_base64({reinterpret_cast<const char*>(hash.data()), hash.size()},
                       Base64::standard) +
         "'";
}

bool is_from_own_site(const Request& request) {
  if (const auto site = request.header("sec-fetch-site")) return *site == "same-origin";
  const auto origin = request.header("origin");
  if (!origin) return true;
  const auto scheme_end = origin->find("://");
  return scheme_end != std::string_view::npos &&
         same_ignoring_case(origin->substr(scheme_end + 3), request.header("host").value_or(""));
}

}  // namespace conversed::api
