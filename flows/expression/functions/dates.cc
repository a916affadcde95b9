#include "flows/expression/functions/dates.h"

namespace conversed::flows::expression {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// Each removes one part from the front of the text. False if the text does not begin with it.
bool take(std::string_view& text, std::string_view one_of) {
  if (text.empty() || one_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

bool take_digits(std::string_view& text, std::size_t count, int& value) {
  if (text.size() < count) return false;
  value = 0;
  for (const char c : text.substr(0, count)) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(count);
  return true;
}

bool take_hours(std::string_view& text, milliseconds& clock) {
  int hour = 0;
  int minute = 0;
  if (!take_digits(text, 2, hour) || !take(text, ":") || !take_digits(text, 2, minute))
    return false;
  clock = hours(hour) + std::chrono::minutes(minute);
  return minute < 60;
}

bool take_seconds(std::string_view& text, milliseconds& clock) {
  int second = 0;
  if (!take_digits(text, 2, second)) return false;
  clock += std::chrono::seconds(second);
  if (!take(text, ".")) return second < 60;
  const auto digits = text.substr(0, text.find_first_not_of("0123456789"));
  text.remove_prefix(digits.size());
  int scale = 100;
  for (const char c : digits) {
    clock += milliseconds((c - '0') * scale);
    scale /= 10;
  }
  return second < 60 && !digits.empty();
}

bool take_clock(std::string_view& text, Moment& moment) {
  milliseconds& clock = moment.clock.emplace();
  if (!take_hours(text, clock) || (take(text, ":") && !take_seconds(text, clock))) return false;
  if (clock > hours(24)) return false;
  if (take(text, "Zz")) {
    moment.offset.emplace(0);
    return true;
  }
  const bool west = text.starts_with('-');
  if (!take(text, "+-")) return true;
  milliseconds& offset = moment.offset.emplace();
  if (!take_hours(text, offset) || offset >= hours(24)) return false;
  if (west) offset = -offset;
  return true;
}

}  // namespace

std::optional<Moment> read_moment(std::string_view text) {
  int year = 0;
  int month = 1;
  int day = 1;
  if (!take_digits(text, 4, year)) return std::nullopt;
  if (take(text, "-") && !take_digits(text, 2, month)) return std::nullopt;
  if (take(text, "-") && !take_digits(text, 2, day)) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  Moment moment{.day = date, .clock = {}, .offset = {}};
  if (take(text, "Tt ") && !take_clock(text, moment)) return std::nullopt;
  return text.empty() ? std::optional(moment) : std::nullopt;
}

}  // namespace conversed::flows::expression
