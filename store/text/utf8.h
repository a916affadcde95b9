#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Code points of texts with any bytes.
namespace conversed::text {

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

// Whether the whole text is well-formed.
[[nodiscard]] bool is_utf8(std::string_view text);

// The text with U+FFFD for each byte outside of a well-formed character.
[[nodiscard]] std::string well_formed(std::string_view text);

// The text, or as much of its beginning as fits `bytes` without cutting a character.
[[nodiscard]] std::string_view cut(std::string_view text, std::size_t bytes);

// The number of characters: of bytes that do not continue one.
[[nodiscard]] std::size_t count_characters(std::string_view text);

}  // namespace conversed::text
