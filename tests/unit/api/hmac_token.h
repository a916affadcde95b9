// Contact-center tokens signed with a shared secret, as a contact center makes them.
#pragma once

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "store/text/base64.h"

namespace conversed::api::test {

inline std::string base64_url(std::string_view bytes) {
  return text::encode_base64(bytes, text::Base64::url);
}

inline std::string unsigned_part(const nlohmann::json& header, const nlohmann::json& claims) {
  return base64_url(header.dump()) + "." + base64_url(claims.dump());
}

inline std::string sign_hmac(const std::string& secret, const std::string& text) {
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &size);
  return {reinterpret_cast<const char*>(mac), size};
}

inline std::string hs256(const nlohmann::json& claims, const std::string& secret,
                         const nlohmann::json& header = {{"alg", "HS256"}}) {
  const auto text = unsigned_part(header, claims);
  return text + "." + base64_url(sign_hmac(secret, text));
}

}  // namespace conversed::api::test
