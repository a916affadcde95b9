#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/model/schedule.h"

// When scheduled injects come. Pure but for the rules of time zones, which ICU has; thread-safe.
namespace conversed::flows {

// The times that a client asks for: exactly one of the first three.
struct ScheduleWish {
  std::string at{};    // a moment, by the time zone's clock unless it says otherwise
  std::string in{};    // a duration from now on, such as 20m
  std::string cron{};  // again and again
  std::string timezone = "UTC";
};

// Sets `cron`, `timezone` and `due_at` of the schedule. A moment that is past for less than a day
// is due at once, since a client may repeat its request. Errors: `invalid_argument`, naming the
// member.
[[nodiscard]] model::Result<void> set_times(model::Schedule& schedule, const ScheduleWish& wish,
                                            model::Timestamp now);

// The earliest time after `now` by the rule of a schedule; nothing if it has no rule.
[[nodiscard]] std::optional<model::Timestamp> time_after(const model::Schedule& schedule,
                                                         model::Timestamp now);

// The next time of a schedule that comes at `now`; nothing if it has none. Missed times do not come
// again.
[[nodiscard]] std::optional<model::Timestamp> next_time(const model::Schedule& schedule,
                                                        model::Timestamp now);

// Its next times, `due_at` first, at most `most`.
[[nodiscard]] std::vector<model::Timestamp> next_times(const model::Schedule& schedule,
                                                       std::size_t most);

}  // namespace conversed::flows
