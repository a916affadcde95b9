#include "flows/nodes/answers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "flows/expression/text.h"
#include "flows/fields.h"
#include "flows/regex.h"
#include "flows/words/number_marks.h"
#include "flows/words/spelled_numbers.h"
#include "flows/words/spoken_times.h"
#include "store/model/url.h"
#include "store/text/ascii.h"
#include "store/text/words.h"

namespace conversed::flows {
namespace {

using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year_month_day;

// Removes the marks that end or enclose a word in a sentence.
std::string_view bare(std::string_view word) {
  constexpr std::string_view before = "<(\"'";
  constexpr std::string_view behind = ">)\"'.,;:!?";
  while (!word.empty() && before.find(word.front()) != std::string_view::npos) {
    word.remove_prefix(1);
  }
  while (!word.empty() && behind.find(word.back()) != std::string_view::npos) {
    word.remove_suffix(1);
  }
  return word;
}

// Splits the text at white space into at most a hundred parts.
std::vector<std::string_view> parts_of(std::string_view text) {
  constexpr std::size_t most = 100;
  std::vector<std::string_view> parts;
  constexpr std::string_view blanks = " \t\r\n";
  std::size_t at = text.find_first_not_of(blanks);
  while (at != std::string_view::npos && parts.size() < most) {
    const auto end = text.find_first_of(blanks, at);
    parts.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(blanks, end);
  }
  return parts;
}

// The groups of the pattern if it matches the whole text. Otherwise empty.
std::vector<std::string> groups_of(const Regex& pattern, std::string_view text) {
  auto found = pattern.find_all(text, 1);
  if (!found || found->empty()) return {};
  return std::move(found->front().groups);
}

int number_of(std::string_view digits) {
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

std::string two_digits(unsigned number) {
  std::string text = std::to_string(number);
  return text.size() < 2 ? "0" + text : text;
}

std::string time_text(const TimeOfDay& time) {
  return two_digits(static_cast<unsigned>(time.hour)) + ':' +
         two_digits(static_cast<unsigned>(time.minute));
}

std::string date_text(const year_month_day& date) {
  std::string year = std::to_string(static_cast<int>(date.year()));
  year.insert(0, year.size() < 4 ? 4 - year.size() : 0, '0');
  return year + '-' + two_digits(static_cast<unsigned>(date.month())) + '-' +
         two_digits(static_cast<unsigned>(date.day()));
}

struct DayName {
  std::string_view name;  // folded
  int days_ahead;
};
constexpr std::array<DayName, 20> day_names{{{"today", 0},
                                             {"tomorrow", 1},
                                             {"day after tomorrow", 2},
                                             {"the day after tomorrow", 2},
                                             {"yesterday", -1},
                                             {"heute", 0},
                                             {"morgen", 1},
                                             {"ubermorgen", 2},
                                             {"gestern", -1},
                                             {"aujourd hui", 0},
                                             {"demain", 1},
                                             {"apres demain", 2},
                                             {"hier", -1},
                                             {"hoy", 0},
                                             {"manana", 1},
                                             {"pasado manana", 2},
                                             {"oggi", 0},
                                             {"domani", 1},
                                             {"vandaag", 0},
                                             {"hoje", 0}}};

std::optional<year_month_day> next_such_day(int month, int day, sys_days today) {
  const year_month_day now(today);
  constexpr int leap_cycle = 8;  // within 8 years every day of the calendar occurs
  for (int ahead = 0; ahead <= leap_cycle; ++ahead) {
    const year_month_day date(now.year() + std::chrono::years(ahead),
                              std::chrono::month(static_cast<unsigned>(month)),
                              std::chrono::day(static_cast<unsigned>(day)));
    if (date.ok() && sys_days(date) >= today) return date;
  }
  return std::nullopt;
}

std::optional<year_month_day> numeric_date(std::string_view text, DateOrder order, sys_days today) {
  static const Regex pattern = *Regex::compile(
      "^([0-9]{1,4})([-./])([0-9]{1,4})(?:\\2([0-9]{1,4}))?\\2?$", Regex::Case::kept);
  const auto parts = groups_of(pattern, text);
  if (parts.empty()) return std::nullopt;
  const int first = number_of(parts[0]);
  const int second = number_of(parts[2]);
  const auto& last = parts[3];  // may be missing
  const auto calendar = [](int year, int month, int day) -> std::optional<year_month_day> {
    const year_month_day date(std::chrono::year(year),
                              std::chrono::month(static_cast<unsigned>(month)),
                              std::chrono::day(static_cast<unsigned>(day)));
    return date.ok() ? std::optional(date) : std::nullopt;
  };
  if (parts[0].size() == 4) {
    return last.empty() ? std::nullopt : calendar(first, second, number_of(last));
  }
  // With dots the day comes first in every country.
  const bool day_first = parts[1] == "." || order == DateOrder::day_first;
  const int day = day_first ? first : second;
  const int month = day_first ? second : first;
  if (last.empty()) return next_such_day(month, day, today);
  if (last.size() == 3 || last.size() == 1) return std::nullopt;
  constexpr int century = 2000;
  return calendar(last.size() == 2 ? century + number_of(last) : number_of(last), month, day);
}

}  // namespace

std::optional<nlohmann::json> read_number(std::string_view text) {
  text = expression::trim(text);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  const char* end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto [rest, error] = std::from_chars(text.data(), end, whole);
      error == std::errc() && rest == end) {
    return whole;
  }
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<nlohmann::json> read_number(std::string_view text, std::string_view locale) {
  text = expression::trim(text);
  const auto plain = unmarked_number(text, locale);
  return read_number(plain ? *plain : text);
}

std::optional<nlohmann::json> read_spelled_number(std::string_view text, std::string_view locale) {
  const auto words = answer_words(expression::trim(text));
  const auto numbers = words.empty() ? nullptr : SpelledNumbers::find(locale);
  const auto digits = numbers == nullptr ? std::nullopt : numbers->decimal(words);
  return digits ? read_number(*digits) : std::nullopt;
}

std::optional<nlohmann::json> as_integer(const nlohmann::json& number) {
  if (number.is_number_integer()) return number;
  const auto value = number.get<double>();
  constexpr double most = 9007199254740992.0;  // beyond this, doubles skip whole numbers
  if (value != std::floor(value) || std::abs(value) > most) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::string> read_email(std::string_view text) {
  for (const auto part : parts_of(text)) {
    auto word = bare(part);
    if (word.starts_with("mailto:")) word.remove_prefix(7);
    const auto at = word.find('@');
    // A host without a dot is a local name, which other networks can't reach.
    if (text::is_email(word) && word.find('.', at) != std::string_view::npos &&
        word.back() != '.') {
      return std::string(word);
    }
  }
  return std::nullopt;
}

std::optional<std::string> read_url(std::string_view text) {
  for (const auto part : parts_of(text)) {
    const auto word = bare(part);
    if (model::is_http_url(word)) return std::string(word);
    std::string with_scheme = "https://" + std::string(word);
    if (word.starts_with("www.") && model::is_http_url(with_scheme)) return with_scheme;
  }
  return std::nullopt;
}

std::optional<std::string> read_phone(std::string_view text) {
  constexpr std::string_view marks = " ()-./\t";
  text = expression::trim(text);
  std::string number;
  for (const char c : text) {
    if (text::is_digit(c) || (c == '+' && number.empty())) {
      number += c;
    } else if (marks.find(c) == std::string_view::npos) {
      return std::nullopt;
    }
  }
  if (number.starts_with("00")) number.replace(0, 2, "+");
  const std::size_t digits = number.size() - (number.starts_with('+') ? 1 : 0);
  if (digits < 5 || digits > 15) return std::nullopt;
  return number;
}

std::optional<std::string> read_date(std::string_view text, DateOrder order,
                                     model::Timestamp today) {
  text = expression::trim(text);
  const auto day = std::chrono::floor<days>(today);
  if (const auto date = numeric_date(text, order, day)) return date_text(*date);
  constexpr std::size_t most_words = 5;
  const auto phrase = text::phrase_of(text, most_words);
  const auto named = std::ranges::find(day_names, phrase, &DayName::name);
  if (named == day_names.end()) return std::nullopt;
  return date_text(year_month_day(day + days(named->days_ahead)));
}

std::optional<std::string> read_time(std::string_view text) {
  constexpr std::size_t most_words = 6;
  const auto phrase = text::phrase_of(text, most_words);
  if (phrase == "noon" || phrase == "mittag") return "12:00";
  if (phrase == "midnight" || phrase == "mitternacht") return "00:00";
  // Optionally a word such as `at`; the hour; optionally `h`, and the minute after that or a blank;
  // optionally `uhr`; optionally `am` or `p m`.
  static const Regex pattern = *Regex::compile(
      "^(?:(?:at|um|a) ?)?([0-9]{1,2})(?:(?: ?(?:h|uhr) ?| )([0-9]{1,2}))?(?: ?(?:h|uhr))?"
      "(?: ?([ap]) ?m)?$",
      Regex::Case::kept);
  const auto parts = groups_of(pattern, phrase);
  if (parts.empty() || parts[0] == phrase) return std::nullopt;  // a number alone is not a time
  int hour = number_of(parts[0]);
  const int minute = number_of(parts[1]);
  if (!parts[2].empty()) {
    if (hour < 1 || hour > 12) return std::nullopt;
    hour = hour % 12 + (parts[2] == "p" ? 12 : 0);
  }
  if (hour > 23 || minute > 59) return std::nullopt;
  return time_text({hour, minute});
}

std::optional<std::string> read_time_in_words(std::string_view text) {
  const auto time = read_spoken_time(expression::trim(text));
  return time ? std::optional(time_text(*time)) : std::nullopt;
}

}  // namespace conversed::flows
