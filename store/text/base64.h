#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace conversed::text {

enum class Base64 : std::uint8_t {
  standard,  // RFC 4648 §4
  url,       // §5: '-' and '_', and never padding
};

// The bytes; nothing if a character, or a bit at the end, does not belong there. Padding may be
// left out of `standard`.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text, Base64 alphabet);

// Without padding for `url`, with it for `standard`.
[[nodiscard]] std::string encode_base64(std::string_view bytes, Base64 alphabet);

[[nodiscard]] std::string sha256_in_base64(std::string_view text, Base64 alphabet);

}  // namespace conversed::text
