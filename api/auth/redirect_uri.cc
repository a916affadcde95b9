#include "api/auth/redirect_uri.h"

#include <algorithm>
#include <optional>

#include "api/http/http_syntax.h"
#include "api/http/percent.h"

namespace conversed::api {
namespace {

// RFC 3986 §2, but for '#': what else comes in a URI is percent-encoded.
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

// What stands between "//" and the path.
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
  // Elsewhere the code would travel in clear.
  if (scheme == "http") return loopback_of(uri).has_value();
  if (scheme == "https") {
    if (!uri.substr(scheme.size()).starts_with("://")) return false;
    const auto authority = authority_of(uri);
    return !authority.empty() && authority.front() != ':' &&
           authority.find('@') == std::string_view::npos;
  }
  // A dot keeps schemes out that browsers have a meaning for, such as javascript.
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
    whole.append(name).append("=").append(percent_encode(value));
    mark = '&';
  }
  return whole;
}

std::string_view scheme_of(std::string_view uri) {
  return uri.substr(0, uri.find(':'));
}

}  // namespace conversed::api
