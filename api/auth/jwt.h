#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/auth/jwks.h"
#include "config/settings.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::api {

struct JwtClaims {
  std::string subject;
  model::Timestamp expires_at{};
};

// Checks the tokens that a contact-center platform signs: JWTs (RFC 7519) in compact form, signed
// with RS256, ES256 or HS256. Immutable, hence thread-safe.
//
// `exp` and `sub` are required; `nbf`, and `iss` and `aud` where settings name them, are checked.
// A token's `alg` never chooses how it is checked: it picks among the keys those that were made for
// it, so that a public key is never taken for a shared secret, and `none` is nobody's.
class JwtVerifier {
 public:
  // How far the platform's clock may be off ours.
  static constexpr std::chrono::seconds leeway{60};
  static constexpr std::size_t max_token_bytes = 8 * 1024;

  // Reads the files that the settings name. `invalid_argument`, naming the setting, if one can't be
  // read or is of no use. Without keys and secret every token is refused.
  [[nodiscard]] static model::Result<JwtVerifier> open(
      const config::ContactCenterSettings& settings);

  JwtVerifier() = default;  // refuses all

  // `unauthenticated`, without a reason: it would be told to whoever forges.
  [[nodiscard]] model::Result<JwtClaims> verify(std::string_view token, model::Timestamp now) const;

 private:
  [[nodiscard]] bool is_signed(std::string_view header, std::string_view text,
                               std::string_view signature) const;

  std::vector<JwtKey> keys_;
  std::string issuer_;
  std::string audience_;
};

}  // namespace conversed::api
