#include "flows/expression/functions/dates.h"

#include <chrono>
#include <limits>

namespace conversed::flows::expression {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool digits(std::size_t count, int& value) {
    if (text_.size() < count) return false;
    value = 0;
    for (const char c : text_.substr(0, count)) {
      if (c < '0' || c > '9') return false;
      value = value * 10 + (c - '0');
    }
    text_.remove_prefix(count);
    return true;
  }

  bool accept(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  // Digits behind a decimal point, as milliseconds.
  bool fraction(int& milliseconds) {
    int scale = 100;
    bool any = false;
    while (!text_.empty() && text_.front() >= '0' && text_.front() <= '9') {
      milliseconds += (text_.front() - '0') * scale;
      scale /= 10;
      text_.remove_prefix(1);
      any = true;
    }
    return any;
  }

  [[nodiscard]] bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
};

struct Time {
  int hour = 0;
  int minute = 0;
  int second = 0;
  int millisecond = 0;
  int offset_minutes = 0;
};

bool read_offset(Reader& reader, Time& time) {
  if (reader.at_end() || reader.accept('Z')) return reader.at_end();
  const bool west = reader.accept('-');
  if (!west && !reader.accept('+')) return false;
  int hours = 0;
  int minutes = 0;
  if (!reader.digits(2, hours) || !reader.accept(':') || !reader.digits(2, minutes)) return false;
  time.offset_minutes = (hours * 60 + minutes) * (west ? -1 : 1);
  return hours < 24 && minutes < 60 && reader.at_end();
}

bool read_time(Reader& reader, Time& time) {
  if (!reader.digits(2, time.hour) || !reader.accept(':') || !reader.digits(2, time.minute))
    return false;
  if (reader.accept(':')) {
    if (!reader.digits(2, time.second)) return false;
    if (reader.accept('.') && !reader.fraction(time.millisecond)) return false;
  }
  const bool midnight = time.hour == 24 && time.minute + time.second + time.millisecond == 0;
  return (time.hour < 24 || midnight) && time.minute < 60 && time.second < 60 &&
         read_offset(reader, time);
}

}  // namespace

double parse_date(std::string_view text) {
  constexpr double invalid = std::numeric_limits<double>::quiet_NaN();
  Reader reader(text);
  int year = 0;
  int month = 1;
  int day = 1;
  Time time;
  if (!reader.digits(4, year)) return invalid;
  if (reader.accept('-') && !reader.digits(2, month)) return invalid;
  if (reader.accept('-') && !reader.digits(2, day)) return invalid;
  if (reader.accept('T')) {
    if (!read_time(reader, time)) return invalid;
  } else if (!reader.at_end()) {
    return invalid;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return invalid;
  const auto days = static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  const double minutes = days * 1440 + time.hour * 60 + time.minute - time.offset_minutes;
  return minutes * 60'000 + time.second * 1000 + time.millisecond;
}

}  // namespace conversed::flows::expression
