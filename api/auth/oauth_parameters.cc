#include "api/auth/oauth_parameters.h"

#include <algorithm>

#include "api/http/http_syntax.h"
#include "store/model/hex.h"
#include "store/text/base64.h"

namespace conversed::api {
namespace {

constexpr std::size_t min_verifier = 43;
constexpr std::size_t max_verifier = 128;
constexpr std::size_t challenge_bytes = 32;

// The characters of RFC 3986 §2 except '#'. All others are percent-encoded in a URI.
bool is_uri_character(char c) {
  return is_letter(c) || is_digit(c) ||
         std::string_view("-._~:/?[]@!$&'()*+,;=%").find(c) != std::string_view::npos;
}

bool is_scheme(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
         });
}

// The part between "//" and the path.
std::string_view authority_of(std::string_view uri) {
  const auto begin = uri.find("//") + 2;
  const auto rest = uri.substr(begin);
  return rest.substr(0, rest.find_first_of("/?"));
}

// "http://127.0.0.1" and "/callback" of "http://127.0.0.1:4711/callback"; nothing for other hosts.
struct Loopback {
  std::string_view host;
  std::string_view rest;
  bool operator==(const Loopback&) const = default;
};
constexpr std::string_view localhost = "http://localhost";
std::optional<Loopback> loopback_of(std::string_view uri) {
  for (const auto host :
       {std::string_view("http://127.0.0.1"), std::string_view("http://[::1]"), localhost}) {
    if (!uri.starts_with(host)) continue;
    std::string_view rest = uri.substr(host.size());
    if (rest.starts_with(':')) {
      const auto end = std::find_if_not(rest.begin() + 1, rest.end(), is_digit);
      rest.remove_prefix(static_cast<std::size_t>(end - rest.begin()));
    }
    if (rest.empty() || rest.front() == '/' || rest.front() == '?') return Loopback{host, rest};
  }
  return std::nullopt;
}

}  // namespace

bool is_redirect_uri(std::string_view uri) {
  if (uri.size() > max_redirect_uri_bytes ||
      !std::all_of(uri.begin(), uri.end(), is_uri_character)) {
    return false;
  }
  const std::string_view scheme = scheme_of(uri);
  if (!is_scheme(scheme) || scheme.size() == uri.size()) return false;
  // A code that is sent to another machine by http could be read on the way.
  if (scheme == "http") return loopback_of(uri).has_value();
  if (scheme == "https") {
    if (!uri.substr(scheme.size()).starts_with("://")) return false;
    const auto authority = authority_of(uri);
    return !authority.empty() && authority.front() != ':' &&
           authority.find('@') == std::string_view::npos;
  }
  // A private-use scheme needs a dot. Schemes with a meaning in browsers have none.
  return scheme.find('.') != std::string_view::npos && uri.size() > scheme.size() + 1;
}

bool same_redirect_uri(std::string_view registered, std::string_view uri) {
  if (registered == uri) return true;
  const auto loopback = loopback_of(registered);
  return loopback && loopback->host != localhost && is_redirect_uri(uri) &&
         loopback_of(uri) == loopback;
}

std::string with_query(
    std::string_view uri,
    const std::vector<std::pair<std::string_view, std::string_view>>& parameters) {
  std::string whole(uri);
  char mark = uri.find('?') == std::string_view::npos ? '?' : '&';
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    whole += mark;
    whole.append(name).append("=").append(model::percent_encoded(value, is_unreserved));
    mark = '&';
  }
  return whole;
}

std::string_view scheme_of(std::string_view uri) {
  return uri.substr(0, uri.find(':'));
}

std::optional<std::string> pkce_challenge(std::string_view verifier) {
  if (verifier.size() < min_verifier || verifier.size() > max_verifier ||
      !std::ranges::all_of(verifier, is_unreserved)) {
    return std::nullopt;
  }
  return text::sha256_in_base64(verifier, text::Base64::url);
}

bool is_pkce_challenge(std::string_view challenge) {
  const auto bytes = text::decode_base64(challenge, text::Base64::url);
  return bytes && bytes->size() == challenge_bytes;
}

std::string_view base_of(std::string_view path, std::string_view base_path) {
  if (base_path.empty()) return {};
  const bool below = path.starts_with(base_path) && path.substr(base_path.size()).starts_with('/');
  const bool behind =
      path.starts_with(metadata_path) && path.substr(metadata_path.size()) == base_path;
  return below || behind ? base_path : std::string_view();
}

std::string issuer_of(const Request& request, std::string_view configured,
                      std::string_view base_path) {
  if (!configured.empty()) return std::string(configured);
  const bool tls = request.header("x-forwarded-proto").value_or("") == "https";
  std::string issuer = tls ? "https://" : "http://";
  const auto host = request.header("host").value_or("");
  issuer += host.empty() ? "localhost" : host;
  return issuer.append(base_of(request.path, base_path));
}

}  // namespace conversed::api
