#include "flows/time/time_zone.h"

#include <unicode/timezone.h>

#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "flows/expression/functions/dates.h"

namespace conversed::flows {
namespace {

using model::Errc;
using model::Result;
using model::Timestamp;

// Making a zone takes longer than a Turn. Each thread has its own: using one is not const.
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
  // No clock changes twice within two days.
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
  const auto moment = expression::read_moment(text);
  const bool fits = text.find_first_of("Tt ") == 10 && text.find('.') == std::string_view::npos;
  const auto clock = moment && fits ? moment->clock : std::nullopt;
  if (!clock || *clock >= std::chrono::hours(24)) {
    return model::fail(Errc::invalid_argument,
                       "a time is written 2027-03-28T14:30, maybe with seconds, and Z or an offset "
                       "such as +01:00 behind it");
  }
  const Timestamp shown = moment->day + *clock;
  return moment->offset ? shown - *moment->offset : zone.first(model::to_unix_ms(shown));
}

}  // namespace conversed::flows
