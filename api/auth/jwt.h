#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/auth/jwks.h"
#include "api/auth/jwks_file.h"
#include "config/settings.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::api {

struct JwtClaims {
  std::string subject;
  // Whose user that is: an id or a name; empty for the only organisation there is.
  std::string organisation;
  model::Timestamp expires_at{};
};

// Checks the tokens that a contact-center platform signs: JWTs (RFC 7519) in compact form, signed
// with RS256, ES256 or HS256. Thread-safe.
//
// `exp` and `sub` are required, and the claim that names the organisation where there is a setting
// for it; `nbf`, and `iss` and `aud` where settings name them, are checked.
// A token's `alg` never chooses how it is checked: it picks among the keys those that were made for
// it, so that a public key is never taken for a shared secret, and `none` is nobody's.
class JwtVerifier {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // How far the platform's clock may be off ours.
  static constexpr std::chrono::seconds leeway{60};
  static constexpr std::size_t max_token_bytes = 8 * 1024;

  // Reads the files that the settings name. `invalid_argument`, naming the setting, if one can't be
  // read or is of no use. Without keys and secret every token is refused. The file of keys is read
  // again when it changes (JwksFile), which the listener is told.
  [[nodiscard]] static model::Result<JwtVerifier> open(
      const config::ContactCenterSettings& settings, KeyFileListener listener = {});

  JwtVerifier() = default;  // refuses all

  // `unauthenticated`, without a reason: it would be told to whoever forges. Tokens expire by
  // `now`; `steady_now` says whether the file of keys is to be looked at again.
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
