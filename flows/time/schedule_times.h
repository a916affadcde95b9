#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/model/schedule.h"

// When scheduled injects come. Pure but for the rules of time zones, which ICU has; thread-safe.
namespace conversed::flows {

// What somebody asks for; exactly one of the first three.
struct ScheduleWish {
  std::string at{};    // a moment, by the time zone's clock unless it says otherwise
  std::string in{};    // a duration from now on, such as 20m
  std::string cron{};  // again and again
  std::string timezone = "UTC";
};

// Sets `cron`, `timezone` and `due_at` of the schedule. A moment that is past comes at once, if it
// is past for less than a day: one that is asked for again may be. Errors: `invalid_argument`,
// naming the member.
[[nodiscard]] model::Result<void> set_times(model::Schedule& schedule, const ScheduleWish& wish,
                                            model::Timestamp now);

// The earliest time after `now` that the rule of a schedule has; nothing if it comes once.
[[nodiscard]] std::optional<model::Timestamp> time_after(const model::Schedule& schedule,
                                                         model::Timestamp now);

// The next time of a schedule that comes at `now`; nothing if it is over. Times that were missed
// came with this one.
[[nodiscard]] std::optional<model::Timestamp> next_time(const model::Schedule& schedule,
                                                        model::Timestamp now);

// Its next times, at most so many, `due_at` first.
[[nodiscard]] std::vector<model::Timestamp> next_times(const model::Schedule& schedule,
                                                       std::size_t most);

}  // namespace conversed::flows
