// Percent-coding of request targets (RFC 3986), and the checks that go with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http/http.h"

namespace conversed::api {

// Decodes `%XX` but for the slash and the percent sign, which stay as `%2F` and `%25`: a slash that
// was encoded belongs to its segment. Nothing when an escape is broken, or the result holds NUL or
// is not UTF-8.
[[nodiscard]] std::optional<std::string> percent_decode_path(std::string_view text);

// Decodes what the above has left of a segment.
[[nodiscard]] std::string percent_decode_segment(std::string_view segment);

// Decodes `a=1&b=x%20y+z` into its pairs, in order ('+' is a space; a name without '=' has an empty
// value; empty parts are skipped). Nothing under the same conditions.
[[nodiscard]] std::optional<HeaderList> parse_query(std::string_view text);

}  // namespace conversed::api
