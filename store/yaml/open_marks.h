#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

// The brackets and quotes of a YAML text that an error may come from.
namespace conversed::yaml {

struct OpenMarks {
  std::vector<std::size_t> brackets;      // the bytes of `[` and `{` that are open, outermost first
  std::optional<std::size_t> quote;       // the byte of the quote that is open
  std::optional<std::size_t> last_quote;  // the byte of the quote that was closed last
  std::size_t last_quote_end = 0;         // the byte behind its end
  std::optional<std::size_t> comment;     // within the innermost bracket, with a closing one in it
};

// Of the text before the byte `end`. It cuts the text as YAML does, but takes wrong text, too.
[[nodiscard]] OpenMarks open_marks(std::string_view text, std::size_t end);

}  // namespace conversed::yaml
