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

// Verifies the tokens that a contact-center platform signs: JWTs (RFC 7519) in compact form, signed
// with RS256, ES256 or HS256. Thread-safe.
//
// `exp` and `sub` are required. The organisation's claim is required if a setting names it. `nbf`
// is checked, and `iss` and `aud` are checked if settings name them. A key is used with its own
// algorithm only, and the token's `alg` has to be the same. So a public key never serves as a
// shared secret, and `none` fits no key.
class JwtVerifier {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // The largest accepted difference between the platform's clock and the daemon's.
  static constexpr std::chrono::seconds leeway{60};
  static constexpr std::size_t max_token_bytes = 8 * 1024;

  // Reads the files that the settings name. `invalid_argument`, with the setting's name, if a file
  // can't be read or has no usable key. Without keys and secret every token is refused. The key
  // file is read again when it changes (JwksFile), and the listener is called.
  [[nodiscard]] static model::Result<JwtVerifier> open(
      const config::ContactCenterSettings& settings, KeyFileListener listener = {});

  JwtVerifier() = default;  // refuses every token

  // The error is `unauthenticated` without a reason, because a reason would help forgers. `now`
  // decides whether a token has expired; `steady_now` decides when to look at the key file again.
  [[nodiscard]] model::Result<JwtClaims> verify(std::string_view token, model::Timestamp now,
                                                TimePoint steady_now) const;

 private:
  [[nodiscard]] bool is_signed(std::string_view header, std::string_view text,
                               std::string_view signature, TimePoint now) const;

  std::vector<JwtKey> secret_;      // the shared secret, or empty
  std::unique_ptr<JwksFile> file_;  // null: none
  std::string issuer_;
  std::string audience_;
  std::string organisation_;
  std::string organisation_claim_;
};

}  // namespace conversed::api
