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

// A recurring time: minute, hour, day of the month, month and day of the week, in the syntax of
// crontab(5), with lists, ranges, steps, English names and words such as `@daily`. If both kinds of
// days are restricted, one match is enough. Immutable, thread-safe.
//
// Times follow the clock of a time zone. When the clock is put forward, a time in the gap comes
// later by the length of the gap. When it is put back, a time in the repeated hour comes once. With
// `*` as the hour the rule follows elapsed time: no time in the gap, and both times of the repeated
// hour.
class Cron {
 public:
  static constexpr std::size_t max_length = 200;

  // Errors: `invalid_argument` with the field's name.
  [[nodiscard]] static model::Result<Cron> parse(std::string_view text);

  // The first time after `after`. Nothing if there is none within nine years, such as 30 February.
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
