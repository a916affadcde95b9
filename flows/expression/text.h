#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "store/text/utf8.h"

// Strings as JavaScript sees them, kept as JSON keeps them. JavaScript counts UTF-16 code units;
// the bytes here are UTF-8 in which half of a surrogate pair, which slicing can leave behind, is
// written like any other code point of its size (WTF-8). Halves that meet again become the
// character they came from; those still alone on the way out become U+FFFD (`scrub`). All functions
// take any bytes: a byte that is not UTF-8 counts as one U+FFFD. Pure, thread-safe.
namespace conversed::flows::expression {

using conversed::text::append_code;
using conversed::text::CodePoint;
using conversed::text::decode;
using conversed::text::is_utf8;

[[nodiscard]] bool is_ascii(std::string_view text);

// The number of UTF-16 code units.
[[nodiscard]] std::size_t unit_length(std::string_view text);

// Appends, joining a high surrogate at the end of `out` with a low one at the start of `piece`.
void append_text(std::string& out, std::string_view piece);

// Units [from, to) of the text; to <= unit_length(text). A view into `text` unless the cut goes
// through a surrogate pair; then `storage` holds the result.
[[nodiscard]] std::string_view slice_units(std::string_view text, std::size_t from, std::size_t to,
                                           std::string& storage);

// The unit at an index below unit_length(text).
[[nodiscard]] char16_t unit_at(std::string_view text, std::size_t index);

// The byte where the unit `index` begins (for the second half of a pair: where its character ends).
[[nodiscard]] std::size_t byte_of_unit(std::string_view text, std::size_t index);

// Negative, 0 or positive, in the order of UTF-16 code units.
[[nodiscard]] int compare_units(std::string_view left, std::string_view right);

[[nodiscard]] std::u16string to_utf16(std::string_view text);
[[nodiscard]] std::string from_utf16(std::u16string_view units);

// Root-locale case mapping, as String.prototype.toUpperCase and toLowerCase.
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

// The text as UTF-8: each lone surrogate becomes U+FFFD.
[[nodiscard]] std::string scrub(std::string_view text);

}  // namespace conversed::flows::expression
