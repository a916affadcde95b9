#include "flows/time/schedule_times.h"

#include <algorithm>
#include <chrono>

#include "flows/time/cron.h"
#include "flows/time/time_zone.h"
#include "store/text/quantity.h"

namespace conversed::flows {
namespace {

using model::Errc;
using model::Result;
using model::Schedule;
using model::Timestamp;

constexpr std::chrono::hours most_past{24};
constexpr std::chrono::hours longest{24 * 3660};

Result<Timestamp> first_time(const ScheduleWish& wish, const TimeZone& zone, Timestamp now) {
  if (!wish.cron.empty()) {
    auto cron = Cron::parse(wish.cron);
    if (!cron) return model::fail(cron.error());
    if (const auto first = cron->next(now, zone)) return *first;
    return model::fail(Errc::invalid_argument,
                       "cron: no day matches; change day, month or weekday");
  }
  if (!wish.in.empty()) {
    const auto duration = text::parse_duration(wish.in);
    if (duration && duration->count() >= 0 && *duration <= longest) return now + *duration;
    return model::fail(Errc::invalid_argument, "in must be a duration such as 20m, at most 3660d");
  }
  auto moment = parse_moment(wish.at, zone);
  if (!moment) return model::fail(Errc::invalid_argument, "at: " + moment.error().message);
  if (*moment < now - most_past)
    return model::fail(Errc::invalid_argument, "at is past; give a later time");
  if (*moment > now + longest) {
    return model::fail(Errc::invalid_argument, "at must be within ten years");
  }
  return moment;
}

}  // namespace

Result<void> set_times(Schedule& schedule, const ScheduleWish& wish, Timestamp now) {
  const int given =
      (wish.at.empty() ? 0 : 1) + (wish.in.empty() ? 0 : 1) + (wish.cron.empty() ? 0 : 1);
  if (given != 1) {
    return model::fail(Errc::invalid_argument, "one of at, in and cron is required");
  }
  const auto zone = TimeZone::find(wish.timezone);
  if (!zone) {
    return model::fail(Errc::invalid_argument,
                       "timezone must be a name such as Europe/Berlin; default UTC");
  }
  auto first = first_time(wish, *zone, now);
  if (!first) return model::fail(first.error());
  schedule.due_at = *first;
  schedule.cron = wish.cron;
  schedule.timezone = wish.timezone;
  return {};
}

std::optional<Timestamp> time_after(const Schedule& schedule, Timestamp now) {
  if (schedule.cron.empty()) return std::nullopt;
  const auto zone = TimeZone::find(schedule.timezone);
  const auto cron = Cron::parse(schedule.cron);
  if (!zone || !cron) return std::nullopt;
  return cron->next(now, *zone);
}

std::optional<Timestamp> next_time(const Schedule& schedule, Timestamp now) {
  return time_after(schedule, std::max(now, schedule.due_at));
}

std::vector<Timestamp> next_times(const Schedule& schedule, std::size_t most) {
  std::vector<Timestamp> times;
  Schedule at = schedule;
  while (times.size() < most) {
    times.push_back(at.due_at);
    const auto next = next_time(at, at.due_at);
    if (!next) break;
    at.due_at = *next;
  }
  return times;
}

}  // namespace conversed::flows
