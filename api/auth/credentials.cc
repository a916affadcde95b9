#include "api/auth/credentials.h"

#include "api/http/http_syntax.h"
#include "store/text/base64.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;

// The text after `scheme` and its spaces. Nothing for another scheme.
std::optional<std::string_view> after_scheme(std::string_view authorization,
                                             std::string_view scheme) {
  const auto space = authorization.find(' ');
  if (space == std::string_view::npos ||
      !equals_ignoring_case(authorization.substr(0, space), scheme)) {
    return std::nullopt;
  }
  const auto begin = authorization.find_first_not_of(' ', space);
  return begin == std::string_view::npos ? std::string_view() : authorization.substr(begin);
}

}  // namespace

Result<std::optional<PresentedCredential>> presented_credential(const Request& request) {
  std::optional<PresentedCredential> found;
  bool several = false;
  const auto add = [&](PresentedCredential credential) {
    several = several || (found && *found != credential);
    found = credential;
  };
  for (const auto& [name, value] : request.headers) {
    if (name == "x-api-key" && !value.empty()) {
      add({CredentialKind::api_key, value});
    } else if (name == "x-contactcenter-authorization") {
      if (const auto token = bearer_token(value)) add({CredentialKind::contact_center, *token});
    } else if (name == "authorization") {
      if (const auto token = bearer_token(value)) add({CredentialKind::access_token, *token});
    }
  }
  for (const auto& [name, value] : request.query) {
    if (name == "api_key" && !value.empty()) add({CredentialKind::api_key, value});
  }
  if (several) {
    return model::fail(Errc::invalid_argument, "the request carries several credentials; send one");
  }
  return found;
}

std::optional<std::string_view> bearer_token(std::string_view authorization) {
  return after_scheme(authorization, "bearer");
}

std::optional<BasicCredentials> parse_basic(std::string_view authorization) {
  const auto encoded = after_scheme(authorization, "basic");
  if (!encoded) return std::nullopt;
  const auto text = text::decode_base64(*encoded, text::Base64::standard);
  if (!text) return std::nullopt;
  const auto colon = text->find(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  return BasicCredentials{text->substr(0, colon), text->substr(colon + 1)};
}

bool is_from_own_site(const Request& request) {
  if (const auto site = request.header("sec-fetch-site")) return *site == "same-origin";
  const auto origin = request.header("origin");
  if (!origin) return true;
  const auto scheme_end = origin->find("://");
  return scheme_end != std::string_view::npos &&
         equals_ignoring_case(origin->substr(scheme_end + 3), request.header("host").value_or(""));
}

}  // namespace conversed::api
