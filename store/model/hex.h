#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace conversed::model {

// For libraries that take `unsigned char`.
[[nodiscard]] inline const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Two lower-case digits.
inline void append_hex(std::string& text, std::uint8_t byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  text += digits[byte >> 4U];
  text += digits[byte & 0xFU];
}

// Two lower-case digits a byte.
[[nodiscard]] inline std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) append_hex(text, byte);
  return text;
}

// The value of a hexadecimal digit; -1 for another character.
[[nodiscard]] constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Percent-encodes the bytes that `is_kept` refuses (RFC 3986 §2.1).
template <typename IsKept>
[[nodiscard]] std::string percent_encoded(std::string_view text, IsKept is_kept) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (is_kept(c)) {
      encoded += c;
    } else {
      encoded += {'%', digits[byte >> 4U], digits[byte & 0xFU]};
    }
  }
  return encoded;
}

}  // namespace conversed::model
