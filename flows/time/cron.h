#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "flows/time/time_zone.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::flows {

// When something recurs: minute, hour, day of the month, month and day of the week, as crontab(5)
// has them, with lists, ranges, steps, English names and `@daily` and its like. If both kinds of
// days are restricted, either will do. Immutable, thread-safe.
//
// Times are by the clock of a time zone. Where it is put forward, a time in the gap comes as much
// later. Where it is put back, a time in the repeated hour comes once. With `*` for the hour the
// rule follows the time that passes: nothing in the gap, and both times of the repeated hour.
class Cron {
 public:
  static constexpr std::size_t max_length = 200;

  // Errors: `invalid_argument`, naming the field.
  [[nodiscard]] static model::Result<Cron> parse(std::string_view text);

  // The first time after `after`; nothing if there is none within nine years, as of 30 February.
  [[nodiscard]] std::optional<model::Timestamp> next(model::Timestamp after,
                                                     const TimeZone& zone) const;

 private:
  Cron() = default;
  [[nodiscard]] bool has_day(std::int64_t day) const;
  [[nodiscard]] std::optional<model::Timestamp> next_in_hour(std::int64_t hour_begin,
                                                             model::Timestamp after,
                                                             const TimeZone& zone) const;

  enum : std::size_t { minutes, hours, days, months, weekdays };
  std::array<std::bitset<60>, 5> values_;  // by field; weekdays count from Sunday
  bool any_day_ = true;                    // of the month
  bool any_weekday_ = true;
};

}  // namespace conversed::flows
