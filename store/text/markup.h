#pragma once

#include <string>
#include <string_view>

namespace conversed::text {

// The entity for a character that HTML and XML reserve in content or in attributes in double
// quotes; empty for all others.
[[nodiscard]] constexpr std::string_view entity_of(char32_t c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    default:
      return {};
  }
}

[[nodiscard]] inline std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto entity = entity_of(static_cast<unsigned char>(c));
    out.append(entity.empty() ? std::string_view(&c, 1) : entity);
  }
  return out;
}

}  // namespace conversed::text
