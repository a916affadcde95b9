#pragma once

#include <optional>
#include <string_view>

// Times of day in words.
namespace conversed::flows {

struct TimeOfDay {
  int hour = 0;  // 0 to 23
  int minute = 0;
};

// A time in English or German, maybe with numbers in digits: `half past seven`, `quarter to 9 pm`,
// `seven thirty`, `seven in the evening`, `halb acht`, `fünf nach halb sieben`, `sieben Uhr zwanzig
// abends`. Without a part of the day it is the time that a clock shows in these digits: `half past
// seven` is 07:30, `quarter to one` is 12:45. A number alone is no time. Thread-safe.
[[nodiscard]] std::optional<TimeOfDay> read_spoken_time(std::string_view text);

}  // namespace conversed::flows
