#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace conversed::model {

// Two lower-case digits a byte.
[[nodiscard]] inline std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4U];
    text += digits[byte & 0xFU];
  }
  return text;
}

}  // namespace conversed::model
