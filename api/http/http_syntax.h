// The lexical rules of HTTP messages (RFC 9110, 9112).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace conversed::api {

// VCHAR, obs-text, space or tab: no NUL, no bare CR, no other control character.
inline bool is_field_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7F) || byte == '\t';
  });
}

inline char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lower_case(std::string_view text) {
  std::string lowered(text);
  std::ranges::transform(lowered, lowered.begin(), to_lower);
  return lowered;
}

inline bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, to_lower, to_lower);
}

inline std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
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

// host [":" port], or empty (RFC 9110 §7.2); user information has no place in it.
inline bool is_host(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7F &&
           std::string_view("/\\?#@,<>\"{}|^`").find(c) == std::string_view::npos;
  });
}

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

inline bool is_letter(char c) {
  return to_lower(c) >= 'a' && to_lower(c) <= 'z';
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
