#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/model/clock.h"
#include "store/model/result.h"

// Local times, by ICU's rules of time zones.
namespace conversed::flows {

// A named time zone, such as `Europe/Berlin`. Local times are milliseconds since 1970-01-01 00:00
// by the zone's clock. Copies are cheap. Immutable, thread-safe.
class TimeZone {
 public:
  // Nothing for an unknown name.
  [[nodiscard]] static std::optional<TimeZone> find(const std::string& name);

  [[nodiscard]] std::int64_t local(model::Timestamp time) const;
  // The times at which the zone's clock shows `local`: one; two in ascending order if the clock is
  // put back; none if it is put forward.
  [[nodiscard]] std::vector<model::Timestamp> when(std::int64_t local) const;
  // The first such time. A skipped local time is moved by the length of the gap: 02:30 is 03:30.
  [[nodiscard]] model::Timestamp first(std::int64_t local) const;

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

// Parses `2027-03-28T02:30`, optionally with seconds, with a blank for the T, and with `Z` or an
// offset such as `+01:00`. Without an offset it is a time of `zone`. Error: `invalid_argument`.
[[nodiscard]] model::Result<model::Timestamp> parse_moment(std::string_view text,
                                                           const TimeZone& zone);

}  // namespace conversed::flows
