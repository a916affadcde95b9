// Percent-coding of request targets (RFC 3986), and the checks that go with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http.h"

namespace conversed::api {

// Decodes `%XX`; nothing when an escape is broken, or the result holds NUL or is not UTF-8.
[[nodiscard]] std::optional<std::string> percent_decode_path(std::string_view text);

// Decodes `a=1&b=x%20y+z` into its pairs, in order ('+' is a space; a name without '=' has an empty
// value; empty parts are skipped). Nothing under the same conditions.
[[nodiscard]] std::optional<HeaderList> parse_query(std::string_view text);

// Encodes all but the unreserved characters, so that the text fits any part of a URL.
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace conversed::api
