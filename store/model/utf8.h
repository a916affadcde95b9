#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Code points of texts with any bytes.
namespace conversed::model {

struct CodePoint {
  char32_t code;      // may be a surrogate
  std::size_t bytes;  // 1 to 4; where the source ends, 0
};

// The code point that begins at the byte `at`. Surrogates are taken as any other of three bytes
// (WTF-8); a byte that is not UTF-8 counts as one U+FFFD.
[[nodiscard]] CodePoint decode(std::string_view text, std::size_t at);

// The bytes of the well-formed character that begins at `at` (RFC 3629 §4: nothing overlong, no
// surrogates, nothing above U+10FFFF), 1 to 4; 0 if none does.
[[nodiscard]] std::size_t sequence_length(std::string_view text, std::size_t at);

void append_code(std::string& out, char32_t code);

}  // namespace conversed::model
