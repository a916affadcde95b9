#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/model/schedule.h"

// The times of scheduled injects. Pure except for ICU's rules of time zones. Thread-safe.
namespace conversed::flows {

// The times in a client's request: exactly one of the first three.
struct ScheduleWish {
  std::string at{};    // a moment by the time zone's clock, or with an offset of its own
  std::string in{};    // a duration from now on, such as 20m
  std::string cron{};  // a rule for repeated times
  std::string timezone = "UTC";
};

// Sets `cron`, `timezone` and `due_at` of the schedule. A moment less than a day ago is due at
// once, because a client may repeat its request. Errors: `invalid_argument` with the member's name.
[[nodiscard]] model::Result<void> set_times(model::Schedule& schedule, const ScheduleWish& wish,
                                            model::Timestamp now);

// The earliest time after `now` by the rule of a schedule. Nothing if it has no rule.
[[nodiscard]] std::optional<model::Timestamp> time_after(const model::Schedule& schedule,
                                                         model::Timestamp now);

// The next time of a schedule that fires at `now`. Nothing if it has none. Skips missed times.
[[nodiscard]] std::optional<model::Timestamp> next_time(const model::Schedule& schedule,
                                                        model::Timestamp now);

// The next times of a schedule, `due_at` first, at most `most`.
[[nodiscard]] std::vector<model::Timestamp> next_times(const model::Schedule& schedule,
                                                       std::size_t most);

}  // namespace conversed::flows
