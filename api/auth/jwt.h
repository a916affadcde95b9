#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
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
  std::string
      organisation;  // the subject's: an id or a name; empty: the only one of the installation
  model::Timestamp expires_at{};
};

// Checks the tokens that a contact-center platform signs: JWTs (RFC 7519) in compact form, signed
// with RS256, ES256 or HS256. Thread-safe.
//
// `exp` and `sub` are required, and so is the claim for the organisation if a setting names one.
// `nbf` is checked, and `iss` and `aud` if settings name them. A key is used with its own algorithm
// only, and a token's `alg` has to be the same. So a public key is never taken for a shared secret,
// and `none` fits no key.
class JwtVerifier {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // How far the platform's clock may be off ours.
  static constexpr std::chrono::seconds leeway{60};
  static constexpr std::size_t max_token_bytes = 8 * 1024;

  // Reads the files that the settings name. `invalid_argument`, naming the setting, if one can't be
  // read or holds no usable key. Without keys and secret every token is refused. The file of keys
  // is read again when it changes (JwksFile); the listener is told.
  [[nodiscard]] static model::Result<JwtVerifier> open(
      const config::ContactCenterSettings& settings, KeyFileListener listener = {});

  JwtVerifier() = default;  // refuses all

  // `unauthenticated` without a reason, which would help forgers. Tokens expire by `now`; the file
  // of keys is looked at again by `steady_now`.
  [[nodiscard]] model::Result<JwtClaims> verify(std::string_view token, model::Timestamp now,
                                                TimePoint steady_now) const;

 private:
  [[nodiscard]] bool is_signed(std::string_view header, std::string_view text,
                               std::string_view signature, TimePoint now) const;

  std::vector<JwtKey> secret_;      // the shared one, if there is one
  std::unique_ptr<JwksFile> file_;  // null: none
  std::string issuer_;
  std::string audience_;
  std::string organisation_;
  std::string organisation_claim_;
};

}  // namespace conversed::api
