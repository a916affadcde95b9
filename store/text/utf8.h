#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Code points of texts that may hold anything.
namespace conversed::text {

struct CodePoint {
  char32_t code;      // may be a surrogate
  std::size_t bytes;  // 1 to 4; where the source ends, 0
};

// The code point that begins at the byte `at`. Surrogates are taken as any other of three bytes
// (WTF-8); a byte that is not UTF-8 counts as one U+FFFD.
[[nodiscard]] CodePoint decode(std::string_view text, std::size_t at);

void append_code(std::string& out, char32_t code);

// The text, or as much of its beginning as fits `bytes` without cutting a character.
[[nodiscard]] std::string_view cut(std::string_view text, std::size_t bytes);

}  // namespace conversed::text
