#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace conversed::flows::expression {

// A date of ISO 8601, optionally with a time and its offset from UTC.
struct Moment {
  std::chrono::sys_days day;
  std::optional<std::chrono::milliseconds> clock;  // at most 24:00
  std::optional<std::chrono::milliseconds> offset;
};

// Reads "2024-05-01T10:30:00.250+02:00". Month, day, time, seconds, fraction and offset are
// optional. `Z` is an offset, and a blank may replace the T. Nothing for any other text.
[[nodiscard]] std::optional<Moment> read_moment(std::string_view text);

}  // namespace conversed::flows::expression
