#include "flows/time/time_zone.h"

#include <unicode/timezone.h>

#include <chrono>
#include <map>
#include <memory>
#include <utility>

namespace conversed::flows {
namespace {

using model::Errc;
using model::Result;
using model::Timestamp;

// Making a zone takes longer than a Turn. Each thread has its own zones, since using one is not
// const.
const icu::TimeZone* zone_named(const std::string& name) {
  constexpr std::size_t max_kept = 64;
  thread_local std::map<std::string, std::unique_ptr<icu::TimeZone>, std::less<>> kept;
  if (const auto found = kept.find(name); found != kept.end()) return found->second.get();
  if (kept.size() >= max_kept) kept.clear();
  std::unique_ptr<icu::TimeZone> zone(
      icu::TimeZone::createTimeZone(icu::UnicodeString::fromUTF8(name)));
  if (zone && *zone == icu::TimeZone::getUnknown()) zone.reset();
  return kept.emplace(name, std::move(zone)).first->second.get();
}

// Reads a text from left to right.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : left_(text) {}

  // Exactly so many digits.
  std::optional<int> number(std::size_t digits) {
    if (left_.size() < digits) return std::nullopt;
    int value = 0;
    for (const char c : left_.substr(0, digits)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    left_.remove_prefix(digits);
    return value;
  }
  // The next character, if it is one of these.
  char one_of(std::string_view wanted) {
    if (left_.empty() || wanted.find(left_.front()) == std::string_view::npos) return 0;
    const char found = left_.front();
    left_.remove_prefix(1);
    return found;
  }
  [[nodiscard]] bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
};

struct Moment {
  std::int64_t local = 0;
  std::optional<std::int64_t> offset;
};

std::optional<std::int64_t> read_date(Cursor& text) {
  const auto year = text.number(4);
  if (!year || text.one_of("-") == 0) return std::nullopt;
  const auto month = text.number(2);
  if (!month || text.one_of("-") == 0) return std::nullopt;
  const auto day = text.number(2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count() * day_ms;
}

// `HH:MM`; an offset's, too.
std::optional<std::int64_t> read_hours(Cursor& text) {
  const auto hour = text.number(2);
  if (!hour || *hour > 23 || text.one_of(":") == 0) return std::nullopt;
  const auto minute = text.number(2);
  if (!minute || *minute > 59) return std::nullopt;
  return *hour * hour_ms + *minute * minute_ms;
}

std::optional<Moment> read_moment(Cursor text) {
  const auto date = read_date(text);
  if (!date || text.one_of("Tt ") == 0) return std::nullopt;
  const auto hours = read_hours(text);
  if (!hours) return std::nullopt;
  Moment moment{*date + *hours, std::nullopt};
  if (text.one_of(":") != 0) {
    const auto second = text.number(2);
    if (!second || *second > 59) return std::nullopt;
    moment.local += std::int64_t{*second} * 1000;
  }
  if (const char sign = text.one_of("Zz+-"); sign == 'Z' || sign == 'z') {
    moment.offset = 0;
  } else if (sign != 0) {
    const auto offset = read_hours(text);
    if (!offset) return std::nullopt;
    moment.offset = sign == '-' ? -*offset : *offset;
  }
  if (!text.at_end()) return std::nullopt;
  return moment;
}

}  // namespace

std::optional<TimeZone> TimeZone::find(const std::string& name) {
  if (zone_named(name) == nullptr) return std::nullopt;
  return TimeZone(name);
}

std::int64_t TimeZone::offset_at(std::int64_t utc) const {
  const icu::TimeZone* zone = zone_named(name_);
  if (zone == nullptr) return 0;
  std::int32_t raw = 0;
  std::int32_t saving = 0;
  UErrorCode status = U_ZERO_ERROR;
  zone->getOffset(static_cast<UDate>(utc), 0, raw, saving, status);
  return U_SUCCESS(status) ? std::int64_t{raw} + saving : 0;
}

std::int64_t TimeZone::local(Timestamp time) const {
  const std::int64_t utc = model::to_unix_ms(time);
  return utc + offset_at(utc);
}

std::vector<Timestamp> TimeZone::when(std::int64_t local) const {
  // No clock is changed twice within two days.
  const std::int64_t before = local - offset_at(local - day_ms);
  const std::int64_t after = local - offset_at(local + day_ms);
  std::vector<Timestamp> times;
  if (before + offset_at(before) == local) times.push_back(model::from_unix_ms(before));
  if (after != before && after + offset_at(after) == local) {
    times.push_back(model::from_unix_ms(after));
  }
  return times;
}

Timestamp TimeZone::first(std::int64_t local) const {
  const auto times = when(local);
  if (!times.empty()) return times.front();
  return model::from_unix_ms(local - offset_at(local - day_ms));
}

std::int64_t day_of_local(std::int64_t local) {
  return (local >= 0 ? local : local - day_ms + 1) / day_ms;
}

Result<Timestamp> parse_moment(std::string_view text, const TimeZone& zone) {
  const auto moment = read_moment(Cursor(text));
  if (!moment) {
    return model::fail(Errc::invalid_argument,
                       "a time is written 2027-03-28T14:30, maybe with seconds, and Z or an offset "
                       "such as +01:00 behind it");
  }
  if (moment->offset) return model::from_unix_ms(moment->local - *moment->offset);
  return zone.first(moment->local);
}

}  // namespace conversed::flows
