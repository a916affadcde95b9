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
#include "store/model/url.h"
#include "store/text/words.h"

namespace conversed::flows {
namespace {

using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year_month_day;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Without the marks that end or enclose a word in a sentence.
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

// The parts of the text between white space; at most a hundred.
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

// The whole of the text as a number of at most `most` digits.
std::optional<int> small_number(std::string_view text, std::size_t most) {
  if (text.empty() || text.size() > most || !std::all_of(text.begin(), text.end(), is_digit)) {
    return std::nullopt;
  }
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string two_digits(unsigned number) {
  std::string text = std::to_string(number);
  return text.size() < 2 ? "0" + text : text;
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

// The numbers between the separators; empty if something else stands there.
std::vector<std::string_view> date_parts(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  if (parts.size() > 1 && parts.back().empty()) parts.pop_back();  // `24.12.`
  const bool numbers = std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    return small_number(part, 4).has_value();
  });
  return numbers && parts.size() <= 3 ? parts : std::vector<std::string_view>{};
}

std::optional<year_month_day> next_such_day(int month, int day, sys_days today) {
  const year_month_day now(today);
  constexpr int leap_cycle = 8;  // years until every day of the calendar has come
  for (int ahead = 0; ahead <= leap_cycle; ++ahead) {
    const year_month_day date(now.year() + std::chrono::years(ahead),
                              std::chrono::month(static_cast<unsigned>(month)),
                              std::chrono::day(static_cast<unsigned>(day)));
    if (date.ok() && sys_days(date) >= today) return date;
  }
  return std::nullopt;
}

std::optional<year_month_day> numeric_date(std::string_view text, DateOrder order, sys_days today) {
  const auto separator = text.find_first_of("-./");
  if (separator == std::string_view::npos) return std::nullopt;
  const auto parts = date_parts(text, text[separator]);
  if (parts.size() < 2) return std::nullopt;
  const auto number = [&](std::size_t i) { return small_number(parts[i], 4).value_or(0); };
  const auto calendar = [](int year, int month, int day) -> std::optional<year_month_day> {
    const year_month_day date(std::chrono::year(year),
                              std::chrono::month(static_cast<unsigned>(month)),
                              std::chrono::day(static_cast<unsigned>(day)));
    return date.ok() ? std::optional(date) : std::nullopt;
  };
  if (parts[0].size() == 4) {
    return parts.size() == 3 ? calendar(number(0), number(1), number(2)) : std::nullopt;
  }
  // With dots the day comes first in every country.
  const bool day_first = text[separator] == '.' || order == DateOrder::day_first;
  const int day = number(day_first ? 0 : 1);
  const int month = number(day_first ? 1 : 0);
  if (parts.size() == 2) return next_such_day(month, day, today);
  if (parts[2].size() == 3 || parts[2].size() == 1) return std::nullopt;
  constexpr int century = 2000;
  return calendar(parts[2].size() == 2 ? century + number(2) : number(2), month, day);
}

// Words, cut where digits and letters meet: `14h30` is three tokens, `2pm` two. Words hold no
// blanks, colons and dots.
std::vector<std::string> time_tokens(const std::vector<text::Word>& words) {
  std::vector<std::string> tokens;
  for (const auto& word : words) {
    for (std::size_t at = 0; at < word.text.size(); ++at) {
      const bool joins = at > 0 && is_digit(word.text[at]) == is_digit(word.text[at - 1]);
      if (!joins) tokens.emplace_back();
      tokens.back() += word.text[at];
    }
  }
  return tokens;
}

// Numbers before any mark, and the letters behind them (`am`), without words such as `at` and
// `uhr`.
struct TimeParts {
  std::vector<int> numbers;
  std::string marks;
};

TimeParts time_parts(const std::vector<std::string>& tokens) {
  TimeParts parts;
  for (const auto& token : tokens) {
    const bool leads = token == "at" || token == "um" || token == "a";
    if (leads && parts.numbers.empty()) continue;
    if (token == "h" || token == "uhr") continue;
    const auto number = small_number(token, 2);
    if (number && parts.marks.empty()) {
      parts.numbers.push_back(*number);
    } else {
      parts.marks += token;
    }
  }
  return parts;
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

std::optional<nlohmann::json> read_integer(std::string_view text) {
  auto number = read_number(text);
  if (!number || number->is_number_integer()) return number;
  const auto value = number->get<double>();
  constexpr double most = 9007199254740992.0;  // beyond, doubles skip whole numbers
  if (value != std::floor(value) || std::abs(value) > most) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::string> read_email(std::string_view text) {
  for (const auto part : parts_of(text)) {
    auto word = bare(part);
    if (word.starts_with("mailto:")) word.remove_prefix(7);
    const auto at = word.find('@');
    // A host without a dot is a local name, which can't be reached from elsewhere.
    if (is_email(word) && word.find('.', at) != std::string_view::npos && word.back() != '.') {
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
    if (is_digit(c) || (c == '+' && number.empty())) {
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
  const auto words = text::words_of(text, most_words);
  if (words.size() == 1 && (words[0].text == "noon" || words[0].text == "mittag")) return "12:00";
  if (words.size() == 1 && (words[0].text == "midnight" || words[0].text == "mitternacht")) {
    return "00:00";
  }
  const auto tokens = time_tokens(words);
  const auto [numbers, marks] = time_parts(tokens);
  if (numbers.empty() || numbers.size() > 2) return std::nullopt;
  int hour = numbers[0];
  const int minute = numbers.size() == 2 ? numbers[1] : 0;
  if (marks == "am" || marks == "pm") {
    if (hour < 1 || hour > 12) return std::nullopt;
    hour = hour % 12 + (marks == "pm" ? 12 : 0);
  } else if (!marks.empty() || tokens.size() == 1) {
    return std::nullopt;  // a number alone says no time
  }
  if (hour > 23 || minute > 59) return std::nullopt;
  return two_digits(static_cast<unsigned>(hour)) + ':' + two_digits(static_cast<unsigned>(minute));
}

}  // namespace conversed::flows
