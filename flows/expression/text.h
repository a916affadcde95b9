#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "store/text/utf8.h"

// JavaScript's strings, stored as JSON stores them. JavaScript counts UTF-16 code units. The bytes
// here are UTF-8. Slicing can leave half of a surrogate pair, which is written like any other code
// point of its size (WTF-8). Halves that meet again become their character. `scrub` turns lone
// halves into U+FFFD before a text leaves. All functions take any bytes: a byte that is not UTF-8
// counts as one U+FFFD. Pure, thread-safe.
namespace conversed::flows::expression {

using conversed::text::append_code;
using conversed::text::CodePoint;
using conversed::text::decode;
using conversed::text::is_utf8;

[[nodiscard]] bool is_ascii(std::string_view text);

// The number of UTF-16 code units.
[[nodiscard]] std::size_t unit_length(std::string_view text);

// Appends `piece`. Joins a surrogate at the end of `out` with one at the start of `piece`.
void append_text(std::string& out, std::string_view piece);

// Units [from, to) of the text; to <= unit_length(text). A view into `text`, or into `storage` if
// the cut splits a surrogate pair.
[[nodiscard]] std::string_view slice_units(std::string_view text, std::size_t from, std::size_t to,
                                           std::string& storage);

// The unit at an index below unit_length(text).
[[nodiscard]] char16_t unit_at(std::string_view text, std::size_t index);

// The byte where the unit `index` begins. For the second half of a pair, the end of its character.
[[nodiscard]] std::size_t byte_of_unit(std::string_view text, std::size_t index);

// Negative, 0 or positive, by the order of UTF-16 code units.
[[nodiscard]] int compare_units(std::string_view left, std::string_view right);

[[nodiscard]] std::u16string to_utf16(std::string_view text);
[[nodiscard]] std::string from_utf16(std::u16string_view units);

// Root-locale case mapping of String.prototype.toUpperCase and toLowerCase.
[[nodiscard]] std::string to_upper(std::string_view text);
[[nodiscard]] std::string to_lower(std::string_view text);

// JavaScript's white space and line terminators.
[[nodiscard]] bool is_space(char32_t code);
[[nodiscard]] std::string_view trim_start(std::string_view text);
[[nodiscard]] std::string_view trim_end(std::string_view text);
[[nodiscard]] std::string_view trim(std::string_view text);

// A character that may begin or continue an identifier (Unicode ID_Start, ID_Continue, $ and _).
[[nodiscard]] bool begins_name(char32_t code);
[[nodiscard]] bool continues_name(char32_t code);

// The text as UTF-8. Each lone surrogate becomes U+FFFD.
[[nodiscard]] std::string scrub(std::string_view text);

}  // namespace conversed::flows::expression
