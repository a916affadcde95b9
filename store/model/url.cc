#include "store/model/url.h"

#include <algorithm>
#include <charconv>

#include "store/model/hex.h"

namespace conversed::model {
namespace {

using namespace std::string_view_literals;

std::string_view behind_scheme(std::string_view url) {
  const auto scheme = url.find("://");
  return scheme == std::string_view::npos ? url : url.substr(scheme + 3);
}

std::string_view path_of(std::string_view url) {
  url = behind_scheme(url);
  const auto begin = url.find_first_of("/\\?#");
  if (begin == std::string_view::npos) return {};
  url.remove_prefix(begin);
  return url.substr(0, url.find_first_of("?#"));
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool encoded = text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
                         hex_value(text[i + 2]) >= 0;
    if (!encoded) {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
    i += 2;
  }
  return decoded;
}

bool has_plain_dot_segment(std::string_view path) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find_first_of("/\\", begin), path.size());
    const auto segment = path.substr(begin, end - begin);
    const auto name = segment.substr(0, segment.find_first_of(";?#\0 \t\r\n"sv));
    if (name == "." || name == "..") return true;
    begin = end + 1;
  }
  return false;
}

// With the port that holds where none is written: "example.com:443".
std::string host_and_port_of(std::string_view url) {
  std::string authority = authority_of(url);
  const auto bracket = authority.rfind(']');
  const bool has_port =
      authority.find(':', bracket == std::string::npos ? 0 : bracket) != std::string::npos;
  if (!has_port) authority += url.starts_with("https:") ? ":443" : ":80";
  return authority;
}

}  // namespace

bool is_http_url(std::string_view text) {
  if (text.starts_with("https://")) {
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
  } else {
    return false;
  }
  const std::string_view authority = text.substr(0, text.find_first_of("/?#"));
  if (authority.empty() || authority.front() == ':') return false;
  // User information would be a secret in the clear; Connections are there for it.
  if (authority.find('@') != std::string_view::npos) return false;
  // A host is written as it is, so that the header Host has it.
  if (authority.front() != '[' && authority.find('%') != std::string_view::npos) return false;
  const auto bracket = authority.rfind(']');  // of an IPv6 address
  const auto colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    int port = 0;
    const char* end = authority.data() + authority.size();
    const auto [rest, error] = std::from_chars(authority.data() + colon + 1, end, port);
    if (error != std::errc() || rest != end || port < 1 || port > 65535) return false;
  }
  // Other names of hosts than ASCII are written in Punycode (RFC 3986 §2, RFC 3492).
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > 0x20 && c < 0x7F && c != '"' && c != '<' && c != '>' && c != '\\';
  });
}

bool has_dot_segment(std::string_view url) {
  // Each server on the way may decode once more.
  constexpr int most_decodings = 4;
  std::string path(path_of(url));
  for (int i = 0; i < most_decodings; ++i) {
    if (has_plain_dot_segment(path)) return true;
    std::string decoded = percent_decoded(path);
    if (decoded.size() == path.size()) return false;
    path = std::move(decoded);
  }
  return has_plain_dot_segment(path);
}

std::string_view url_problem(std::string_view url) {
  if (!is_http_url(url)) return "expected an absolute http or https URL without user information";
  if (has_dot_segment(url)) return "a segment of the URL's path is '.' or '..'";
  return {};
}

std::string authority_of(std::string_view url) {
  url = behind_scheme(url);
  std::string authority(url.substr(0, url.find_first_of("/?#")));
  for (char& c : authority) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return authority;
}

bool goes_to(std::string_view url, const std::vector<std::string>& hosts) {
  if (hosts.empty()) return true;
  const std::string wanted = host_and_port_of(url);
  const std::string scheme(url.substr(0, url.find("://")));
  return std::ranges::any_of(hosts, [&](const std::string& host) {
    return host_and_port_of(scheme + "://" + host) == wanted;
  });
}

bool is_host(std::string_view text) {
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-._:[]") ==
             std::string_view::npos &&
         is_http_url("http://" + std::string(text));
}

}  // namespace conversed::model
