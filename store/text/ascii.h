#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

// Characters of ASCII, without regard to the locale.
namespace conversed::text {

[[nodiscard]] constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

[[nodiscard]] constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] constexpr bool is_letter(char c) {
  return to_lower(c) >= 'a' && to_lower(c) <= 'z';
}

[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string lowered(text);
  std::ranges::transform(lowered, lowered.begin(), to_lower);
  return lowered;
}

[[nodiscard]] inline bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, to_lower, to_lower);
}

// Without the blanks and tabs around it.
[[nodiscard]] constexpr std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Whether the text has only letters and digits of ASCII, and characters of `others`.
[[nodiscard]] inline bool consists_of(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [&](char c) {
    return is_digit(c) || is_letter(c) || others.find(c) != std::string_view::npos;
  });
}

// C0 controls and DEL.
[[nodiscard]] inline bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

inline constexpr std::size_t max_email_bytes = 254;  // RFC 5321 §4.5.3.1.3, without its brackets

// Whether the text can be an e-mail address: one @ within, and no character that ends an address in
// a list or a sentence.
[[nodiscard]] inline bool is_email(std::string_view text) {
  const auto at = text.find('@');
  return at != 0 && at != std::string_view::npos && at + 1 != text.size() &&
         text.find('@', at + 1) == std::string_view::npos && text.size() <= max_email_bytes &&
         std::ranges::none_of(text, [](unsigned char c) {
           return c <= ' ' || c == 0x7F || c == ',' || c == ';' || c == '<' || c == '>';
         });
}

}  // namespace conversed::text
