#include "api/auth/jwt.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "store/model/json.h"
#include "store/text/base64.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;

// Decodes a part of a token, which holds a JSON object.
std::optional<json> object_of(std::string_view part) {
  const auto text = text::decode_base64(part, text::Base64::url);
  if (!text) return std::nullopt;
  auto object = model::parse_json(*text);
  if (!object || !object->is_object()) return std::nullopt;
  return std::move(*object);
}

std::optional<JwtAlgorithm> algorithm_of(const json& header) {
  const auto name = header.find("alg");
  if (name == header.end()) return std::nullopt;
  if (*name == "RS256") return JwtAlgorithm::rs256;
  if (*name == "ES256") return JwtAlgorithm::es256;
  if (*name == "HS256") return JwtAlgorithm::hs256;
  return std::nullopt;
}

// A time of the claims: seconds since the Unix epoch, maybe with a fraction.
std::optional<model::Timestamp> time_of(const json& claims, const char* name) {
  constexpr double latest = 1e11;  // some time in the year 5138
  const auto claim = claims.find(name);
  if (claim == claims.end() || !claim->is_number()) return std::nullopt;
  const double seconds = claim->get<double>();
  if (!(seconds >= 0 && seconds <= latest)) return std::nullopt;
  return model::from_unix_ms(std::llround(seconds * 1000));
}

// The text of a claim. Empty if the claim is missing or not a text.
std::string text_of(const json& claims, const std::string& name) {
  const auto claim = claims.find(name);
  return claim != claims.end() && claim->is_string() ? claim->get<std::string>() : std::string();
}

bool names_audience(const json& claims, const std::string& audience) {
  const auto claim = claims.find("aud");
  if (claim == claims.end()) return false;
  if (!claim->is_array()) return *claim == audience;
  return std::find(claim->begin(), claim->end(), json(audience)) != claim->end();
}

}  // namespace

Result<JwtVerifier> JwtVerifier::open(const config::ContactCenterSettings& settings,
                                      KeyFileListener listener) {
  JwtVerifier verifier;
  verifier.issuer_ = settings.issuer;
  verifier.audience_ = settings.audience;
  verifier.organisation_ = settings.organisation;
  verifier.organisation_claim_ = settings.organisation_claim;
  if (!settings.jwks_file.empty()) {
    auto file = JwksFile::open(settings.jwks_file, std::move(listener));
    if (!file) return model::fail(file.error());
    verifier.file_ = *std::move(file);
  }
  std::string secret = settings.secret.reveal();
  if (!settings.secret_file.empty()) {
    auto text = read_setting_file(settings.secret_file, "contact_center.secret_file");
    if (!text) return model::fail(text.error());
    secret = std::move(*text);
    if (secret.ends_with('\n')) secret.pop_back();
    if (secret.ends_with('\r')) secret.pop_back();
  }
  if (!secret.empty() || !settings.secret_file.empty()) {
    auto key = shared_key(std::move(secret));
    if (!key) {
      return model::fail(Errc::invalid_argument, "contact_center.secret: " + key.error().message);
    }
    verifier.secret_.push_back(*std::move(key));
  }
  return verifier;
}

Result<JwtClaims> JwtVerifier::verify(std::string_view token, model::Timestamp now,
                                      TimePoint steady_now) const {
  const auto refuse = [] {
    return model::fail(Errc::unauthenticated, "the contact-center token is not valid");
  };
  const auto first = token.find('.');
  const auto second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (token.size() > max_token_bytes || second == std::string_view::npos) return refuse();
  const auto signature = text::decode_base64(token.substr(second + 1), text::Base64::url);
  if (!signature) return refuse();
  if (!is_signed(token.substr(0, first), token.substr(0, second), *signature, steady_now)) {
    return refuse();
  }

  const auto claims = object_of(token.substr(first + 1, second - first - 1));
  if (!claims) return refuse();
  const auto expires_at = time_of(*claims, "exp");
  if (!expires_at || *expires_at + leeway <= now) return refuse();
  if (claims->contains("nbf")) {
    const auto not_before = time_of(*claims, "nbf");
    if (!not_before || *not_before > now + leeway) return refuse();
  }
  if (!issuer_.empty() && claims->value("iss", json()) != issuer_) return refuse();
  if (!audience_.empty() && !names_audience(*claims, audience_)) return refuse();
  JwtClaims verified{text_of(*claims, "sub"), organisation_, *expires_at + leeway};
  if (verified.subject.empty()) return refuse();
  if (organisation_claim_.empty()) return verified;
  verified.organisation = text_of(*claims, organisation_claim_);
  // An empty organisation would name the installation's only one.
  if (verified.organisation.empty()) return refuse();
  return verified;
}

bool JwtVerifier::is_signed(std::string_view header_part, std::string_view text,
                            std::string_view signature, TimePoint now) const {
  const auto header = object_of(header_part);
  // RFC 7515 §4.1.11 requires that every extension in `crit` is understood. None is supported.
  if (!header || header->contains("crit")) return false;
  const auto algorithm = algorithm_of(*header);
  if (!algorithm) return false;
  const auto key_id = header->find("kid");
  const auto checks = [&](const JwtKey& key) {
    if (key.algorithm != *algorithm) return false;
    // A key without an id, such as the shared secret, fits any `kid`.
    if (key_id != header->end() && !key.id.empty() && *key_id != key.id) return false;
    return key.verifies(text, signature);
  };
  if (std::any_of(secret_.begin(), secret_.end(), checks)) return true;
  if (!file_) return false;
  const auto keys = file_->keys(now, JwksFile::usual_interval);
  if (std::any_of(keys->begin(), keys->end(), checks)) return true;
  // The unknown key may have been added to the file since the last look.
  const auto is_named = [&](const JwtKey& key) { return *key_id == key.id; };
  if (key_id == header->end() || std::any_of(keys->begin(), keys->end(), is_named)) return false;
  const auto newer = file_->keys(now, JwksFile::soon_interval);
  return newer != keys && std::any_of(newer->begin(), newer->end(), checks);
}

}  // namespace conversed::api
