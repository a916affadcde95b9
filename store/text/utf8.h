#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "store/model/utf8.h"

namespace conversed::text {

using model::append_code;
using model::CodePoint;
using model::decode;
using model::sequence_length;

// Whether the whole text is well-formed.
[[nodiscard]] bool is_utf8(std::string_view text);

// The text with U+FFFD for each byte outside of a well-formed character.
[[nodiscard]] std::string well_formed(std::string_view text);

// The text, or as much of its beginning as fits `bytes` without cutting a character.
[[nodiscard]] std::string_view cut(std::string_view text, std::size_t bytes);

// The number of characters: of bytes that do not continue one.
[[nodiscard]] std::size_t count_characters(std::string_view text);

}  // namespace conversed::text
