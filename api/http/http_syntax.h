// The lexical rules of HTTP messages (RFC 9110, 9112).
#pragma once

#include <algorithm>
#include <string_view>

#include "store/text/ascii.h"

namespace conversed::api {

using text::equals_ignoring_case;
using text::is_digit;
using text::is_letter;
using text::lower_case;
using text::to_lower;
using text::trim;

// VCHAR, obs-text, space or tab: no NUL, no bare CR, no other control character.
inline bool is_field_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7F) || byte == '\t';
  });
}

// Calls `visit` with each trimmed, non-empty element of a comma-separated list.
template <typename F>
void for_each_element(std::string_view list, F&& visit) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    const auto element = trim(list.substr(0, comma));
    if (!element.empty()) visit(element);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
}

// host [":" port], or empty (RFC 9110 §7.2). User information is not allowed.
inline bool is_host(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7F &&
           std::string_view("/\\?#@,<>\"{}|^`").find(c) == std::string_view::npos;
  });
}

inline bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

// The unreserved characters of a URI (RFC 3986 §2.3).
inline bool is_unreserved(char c) {
  return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

}  // namespace conversed::api
