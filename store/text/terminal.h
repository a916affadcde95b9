#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Foreign texts on a terminal.
namespace conversed::text {

enum class Lines : std::uint8_t {
  one,   // line ends and tabs are shown escaped
  many,  // they stay
};

// The text, safe for a terminal. A character that would act on the terminal becomes its escape,
// such as `\u001b`: control characters of C0 and C1, characters that change the direction of
// writing (Unicode's bidirectional embeddings, overrides and isolates), line and paragraph
// separators, and the byte order mark. A byte that is not UTF-8 becomes U+FFFD.
//
// JSON stays the same JSON: in it such characters stand only inside of strings, where the escape
// means the character.
[[nodiscard]] std::string shown(std::string_view text, Lines lines);

// The text in double quotes, for a message: safe for a terminal, with `\` before quotes, and cut
// after 60 bytes, at a character's border.
[[nodiscard]] std::string in_quotes(std::string_view text);

// The columns that a text without control characters takes: two for wide characters of East Asia
// and emoji, none for marks that combine with the character before them.
[[nodiscard]] std::size_t width(std::string_view text);

// The text if it takes at most `columns`. Otherwise its beginning with `…`, at most `columns` wide.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t columns);

}  // namespace conversed::text
