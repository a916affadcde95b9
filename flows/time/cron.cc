#include "flows/time/cron.h"

#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/text/ascii.h"

namespace conversed::flows {
namespace {

using model::Errc;
using model::Result;
using model::Timestamp;

constexpr std::array<std::string_view, 12> month_names{"jan", "feb", "mar", "apr", "may", "jun",
                                                       "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> weekday_names{"sun", "mon", "tue", "wed",
                                                        "thu", "fri", "sat"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> nicknames{{
    {"@hourly", "0 * * * *"},
    {"@daily", "0 0 * * *"},
    {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},
    {"@monthly", "0 0 1 * *"},
    {"@yearly", "0 0 1 1 *"},
}};

// The values of one of the five fields.
struct Field {
  std::string_view name;
  int least;
  int most;
  std::span<const std::string_view> names;  // names of the values from `least` on
};

std::vector<std::string_view> split(std::string_view text, std::string_view at) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find_first_of(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<int> number_in(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc() && end == text.data() + text.size() && text[0] != '-';
  return good ? std::optional(value) : std::nullopt;
}

std::optional<int> value_in(std::string_view text, const Field& field) {
  if (text.empty()) return std::nullopt;
  for (std::size_t i = 0; i < field.names.size(); ++i) {
    if (text::equals_ignoring_case(text, field.names[i])) return field.least + static_cast<int>(i);
  }
  const auto value = number_in(text);
  return value && *value >= field.least && *value <= field.most ? value : std::nullopt;
}

// One part of a list: `*`, `5` or `1-5`, each with an optional step after a slash.
struct Range {
  int first;
  int last;
  int step;
};
std::optional<Range> range_in(std::string_view text, const Field& field) {
  const auto slash = text.find('/');
  Range range{field.least, field.most, 1};
  if (slash != std::string_view::npos) {
    const auto step = slash + 1 < text.size() ? number_in(text.substr(slash + 1)) : std::nullopt;
    if (!step || *step < 1 || *step > field.most) return std::nullopt;
    range.step = *step;
    text = text.substr(0, slash);
  }
  if (text == "*") return range;
  const auto dash = text.find('-');
  const auto first = value_in(text.substr(0, dash), field);
  if (!first) return std::nullopt;
  range.first = *first;
  if (dash != std::string_view::npos) {
    const auto last = value_in(text.substr(dash + 1), field);
    if (!last || *last < *first) return std::nullopt;
    range.last = *last;
  } else if (slash == std::string_view::npos) {
    range.last = *first;
  }
  return range;
}

// The values of the field's text. None if the text is wrong.
std::bitset<60> values_in(std::string_view text, const Field& field) {
  std::bitset<60> values;
  for (const auto part : split(text, ",")) {
    const auto range = range_in(part, field);
    if (!range) return {};
    for (int value = range->first; value <= range->last; value += range->step) {
      values.set(static_cast<std::size_t>(value));
    }
  }
  return values;
}

tl::unexpected<model::Error> wrong(std::string_view what) {
  return model::fail(Errc::invalid_argument, "cron: " + std::string(what));
}

}  // namespace

Result<Cron> Cron::parse(std::string_view text) {
  if (text.size() > max_length) {
    return wrong("expected at most " + std::to_string(max_length) + " characters");
  }
  for (const auto& [nickname, meaning] : nicknames) {
    if (text == nickname) text = meaning;
  }
  auto parts = split(text, " \t");
  std::erase(parts, std::string_view());
  static constexpr std::array<Field, 5> fields{{{"the minute", 0, 59, {}},
                                                {"the hour", 0, 23, {}},
                                                {"the day of the month", 1, 31, {}},
                                                {"the month", 1, 12, month_names},
                                                {"the day of the week", 0, 7, weekday_names}}};
  if (parts.size() != fields.size()) {
    return wrong("expected five fields: minute, hour, day of the month, month, day of the week");
  }
  Cron cron;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    cron.values_[i] = values_in(parts[i], fields[i]);
    if (cron.values_[i].none()) {
      return wrong(std::string(fields[i].name) + " is not one of " +
                   std::to_string(fields[i].least) + " to " + std::to_string(fields[i].most) +
                   ", nor *, a list, a range or a step of them: " + std::string(parts[i]));
    }
  }
  if (cron.values_[weekdays][7]) cron.values_[weekdays].set(0);  // Sunday is 0 and 7
  cron.any_day_ = parts[days].starts_with('*');
  cron.any_weekday_ = parts[weekdays].starts_with('*');
  return cron;
}

bool Cron::has_day(std::int64_t day) const {
  const std::chrono::sys_days date{std::chrono::days(day)};
  const std::chrono::year_month_day parts(date);
  if (!values_[months][static_cast<unsigned>(parts.month())]) return false;
  const bool of_month = values_[days][static_cast<unsigned>(parts.day())];
  const bool of_week = values_[weekdays][std::chrono::weekday(date).c_encoding()];
  // A `*` with a step restricts the days, too. Then both kinds of days have to match.
  return any_day_ || any_weekday_ ? of_month && of_week : of_month || of_week;
}

// The first time after `after` within one hour of the local clock.
std::optional<Timestamp> Cron::next_in_hour(std::int64_t hour_begin, Timestamp after,
                                            const TimeZone& zone) const {
  std::optional<Timestamp> found;
  const auto take = [&](Timestamp time) {
    if (time > after && (!found || time < *found)) found = time;
  };
  const bool every_hour = values_[hours].count() == 24;
  for (std::size_t minute = 0; minute < 60; ++minute) {
    if (!values_[minutes][minute]) continue;
    const std::int64_t local = hour_begin + static_cast<std::int64_t>(minute) * minute_ms;
    if (!every_hour) {
      take(zone.first(local));
    } else {
      for (const auto time : zone.when(local)) take(time);
    }
  }
  return found;
}

std::optional<Timestamp> Cron::next(Timestamp after, const TimeZone& zone) const {
  constexpr std::int64_t days_looked_through = 366 * 9;
  // No clock change is larger. A moved time may belong to the day before.
  constexpr std::int64_t most_moved = 3 * hour_ms;
  const std::int64_t local_after = zone.local(after);
  const std::int64_t begin = day_of_local(local_after);
  std::optional<Timestamp> found;
  for (std::int64_t day = begin - 1; day <= begin + days_looked_through; ++day) {
    if (!has_day(day)) continue;
    for (std::size_t hour = 0; hour < 24; ++hour) {
      const std::int64_t local = day * day_ms + static_cast<std::int64_t>(hour) * hour_ms;
      if (!values_[hours][hour] || local + hour_ms + most_moved < local_after) continue;
      // Times of later hours are later, unless a clock change moves them.
      if (found && local > zone.local(*found) + most_moved) return found;
      const auto time = next_in_hour(local, after, zone);
      if (time && (!found || *time < *found)) found = time;
    }
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace conversed::flows
