// Percent-coding of request targets (RFC 3986), with its checks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http/http.h"

namespace conversed::api {

// Decodes `%XX`. An encoded slash or percent sign stays as `%2F` or `%25`, because an encoded slash
// does not separate segments. Nothing if an escape is broken, or if the result has NUL or is not
// UTF-8.
[[nodiscard]] std::optional<std::string> percent_decode_path(std::string_view text);

// Decodes the `%2F` and `%25` that percent_decode_path has left in a segment.
[[nodiscard]] std::string percent_decode_segment(std::string_view segment);

// Decodes `a=1&b=x%20y+z` into its pairs, in order. '+' is a space, a name without '=' has an empty
// value, and empty parts are skipped. Nothing under the same conditions.
[[nodiscard]] std::optional<HeaderList> parse_query(std::string_view text);

}  // namespace conversed::api
