#pragma once

#include <string_view>

namespace conversed::flows::expression {

// Milliseconds since 1970 in UTC of a date as ISO 8601 and ECMA-262 write it ("2024-05-01",
// "2024-05-01T10:30Z", "2024-05-01T10:30:00.250+02:00"); NaN for anything else. A time without an
// offset is taken as UTC, since a daemon's own time zone means nothing to a conversation.
[[nodiscard]] double parse_date(std::string_view text);

}  // namespace conversed::flows::expression
