#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/model/clock.h"
#include "store/model/result.h"

// Times by the clock on a wall. The rules of time zones are ICU's.
namespace conversed::flows {

// A named time zone, such as `Europe/Berlin`. Local times are milliseconds since midnight of
// 1970-01-01 by the zone's clock. Copies are cheap; immutable, thread-safe.
class TimeZone {
 public:
  // Nothing for a name that ICU does not know.
  [[nodiscard]] static std::optional<TimeZone> find(const std::string& name);

  [[nodiscard]] std::int64_t local(model::Timestamp time) const;
  // When the clock on the wall shows `local`: once, twice in ascending order where it is put back,
  // never where it is put forward.
  [[nodiscard]] std::vector<model::Timestamp> when(std::int64_t local) const;
  // The first such time. A local time that is left out is taken as if the clock had not been put
  // forward: 02:30 then is 03:30.
  [[nodiscard]] model::Timestamp first(std::int64_t local) const;

  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  explicit TimeZone(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::int64_t offset_at(std::int64_t utc) const;

  std::string name_;
};

inline constexpr std::int64_t minute_ms = 60'000;
inline constexpr std::int64_t hour_ms = 60 * minute_ms;
inline constexpr std::int64_t day_ms = 24 * hour_ms;

// The day of a local time, counted from 1970-01-01.
[[nodiscard]] std::int64_t day_of_local(std::int64_t local);

// `2027-03-28T02:30`, also with seconds, a blank for the T, and `Z` or an offset such as `+01:00`
// behind it; without one it is a time of `zone`. Errors: `invalid_argument`.
[[nodiscard]] model::Result<model::Timestamp> parse_moment(std::string_view text,
                                                           const TimeZone& zone);

}  // namespace conversed::flows
