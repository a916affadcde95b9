#include "flows/words/spoken_times.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flows/words/spelled_numbers.h"
#include "store/text/ascii.h"

namespace conversed::flows {
namespace {

constexpr int hours_a_day = 24;
constexpr int noon = 12;
constexpr int minutes_an_hour = 60;
constexpr int half = 30;
constexpr int quarter = 15;

// Words of an answer. Folded, so without accents, and `o'clock` is two.
using Words = std::span<const std::string>;

enum class Part : std::uint8_t { none, am, pm, morning, midday, afternoon, evening, night };

struct PartName {
  std::string_view words;
  Part part;
};

// The longest names first.
constexpr std::array english_parts{PartName{"in the morning", Part::morning},
                                   PartName{"in the afternoon", Part::afternoon},
                                   PartName{"in the evening", Part::evening},
                                   PartName{"at night", Part::night},
                                   PartName{"a m", Part::am},
                                   PartName{"p m", Part::pm},
                                   PartName{"am", Part::am},
                                   PartName{"pm", Part::pm}};
constexpr std::array german_parts{
    PartName{"in der nacht", Part::night},   PartName{"am morgen", Part::morning},
    PartName{"am vormittag", Part::morning}, PartName{"am nachmittag", Part::afternoon},
    PartName{"am abend", Part::evening},     PartName{"morgens", Part::morning},
    PartName{"fruh", Part::morning},         PartName{"vormittags", Part::morning},
    PartName{"mittags", Part::midday},       PartName{"nachmittags", Part::afternoon},
    PartName{"abends", Part::evening},       PartName{"nachts", Part::night}};

bool are(Words words, std::string_view phrase) {
  for (const auto& word : words) {
    if (!phrase.starts_with(word)) return false;
    phrase.remove_prefix(word.size());
    if (phrase.starts_with(' ')) phrase.remove_prefix(1);
  }
  return phrase.empty();
}

std::size_t count_of_words(std::string_view phrase) {
  return 1 + static_cast<std::size_t>(std::ranges::count(phrase, ' '));
}

// Removes the phrase from the end. False if the words do not end in it.
bool take_back(Words& words, std::string_view phrase) {
  const std::size_t count = count_of_words(phrase);
  if (words.size() < count || !are(words.last(count), phrase)) return false;
  words = words.first(words.size() - count);
  return true;
}

bool take_front(Words& words, std::string_view phrase) {
  const std::size_t count = count_of_words(phrase);
  if (words.size() < count || !are(words.first(count), phrase)) return false;
  words = words.subspan(count);
  return true;
}

Part take_part(Words& words, std::span<const PartName> names) {
  for (const auto& name : names) {
    if (take_back(words, name.words)) return name.part;
  }
  return Part::none;
}

// Includes both ends. Empty by default.
struct HourSpan {
  int first = 1;
  int last = 0;
  [[nodiscard]] constexpr bool contains(int hour) const { return hour >= first && hour <= last; }
};

// The hours that people name in a part of the day.
struct PartHours {
  Part part;
  bool twelve_is_midnight;
  HourSpan after_noon;  // by the clock of 12 hours
  HourSpan as_named;
  HourSpan late_as_named{};
};
constexpr std::array hours_of_parts{PartHours{Part::am, true, {}, {1, 11}},
                                    PartHours{Part::pm, false, {1, 11}, {12, 12}},
                                    PartHours{Part::morning, true, {}, {0, 11}},
                                    PartHours{Part::midday, false, {1, 2}, {11, 14}},
                                    PartHours{Part::afternoon, false, {1, 11}, {12, 23}},
                                    PartHours{Part::evening, true, {4, 11}, {0, 0}, {16, 23}},
                                    PartHours{Part::night, true, {6, 11}, {0, 5}, {21, 23}}};

// The hour of 0 to 23 in that part of the day.
std::optional<int> hour_in(Part part, int hour) {
  const auto* const known = std::ranges::find(hours_of_parts, part, &PartHours::part);
  if (known == hours_of_parts.end()) return hour;
  if (hour == noon && known->twelve_is_midnight) return 0;
  if (known->after_noon.contains(hour)) return hour + noon;
  const bool is_named = known->as_named.contains(hour) || known->late_as_named.contains(hour);
  return is_named ? std::optional(hour) : std::nullopt;
}

// Reads the times of one language.
class Clock {
 public:
  explicit Clock(std::string_view language) : numbers_(SpelledNumbers::find(language)) {}

  // In digits or in words.
  [[nodiscard]] std::optional<int> number(Words words, int least, int most) const {
    std::optional<std::int64_t> found;
    if (words.size() == 1 && words[0].size() <= 2 &&
        std::ranges::all_of(words[0], text::is_digit)) {
      found = std::stoi(words[0]);
    } else if (numbers_ != nullptr) {
      found = numbers_->whole(words);
    }
    if (!found || *found < least || *found > most) return std::nullopt;
    return static_cast<int>(*found);
  }
  [[nodiscard]] std::optional<int> hour(Words words) const {
    return number(words, 0, hours_a_day - 1);
  }

  // The minutes before or after an hour. Without their unit only round ones count, since `nine to
  // five` names two times.
  [[nodiscard]] std::optional<int> minutes(Words words,
                                           std::span<const std::string_view> units) const {
    for (const auto unit : units) {
      if (take_back(words, unit)) return number(words, 1, minutes_an_hour - 1);
    }
    constexpr std::array round{5, 10, 20, 25};
    const auto found = number(words, 1, half);
    return found && std::ranges::count(round, *found) > 0 ? found : std::nullopt;
  }

  // `minutes` from the full hour; less than 0: before it. Before one o'clock it is twelve.
  [[nodiscard]] static std::optional<TimeOfDay> around(std::optional<int> hour, int minutes) {
    if (!hour) return std::nullopt;
    if (minutes >= 0) return TimeOfDay{*hour, minutes};
    const int before = *hour == 1 ? noon : (*hour + hours_a_day - 1) % hours_a_day;
    return TimeOfDay{before, minutes_an_hour + minutes};
  }

 private:
  std::shared_ptr<const SpelledNumbers> numbers_;  // null without ICU's data
};

class English {
 public:
  static constexpr std::string_view at = "at";
  static constexpr std::span<const PartName> parts = english_parts;

  // The time without the word before it and the part of the day behind it.
  [[nodiscard]] std::optional<TimeOfDay> plain(Words words, bool is_marked) const {
    if (take_back(words, "o clock") || take_back(words, "oclock")) {
      return Clock::around(clock_.hour(words), 0);
    }
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
      if (const int sign = direction(words[i]); sign != 0) {
        return beside(words.first(i), sign, words.subspan(i + 1));
      }
    }
    if (take_front(words, "half")) return Clock::around(clock_.hour(words), half);
    if (auto time = in_a_row(words)) return time;
    return is_marked ? Clock::around(clock_.hour(words), 0) : std::nullopt;
  }

 private:
  static int direction(std::string_view word) {
    if (word == "past" || word == "after") return 1;
    return word == "to" || word == "till" || word == "before" ? -1 : 0;
  }

  [[nodiscard]] std::optional<TimeOfDay> beside(Words offset, int sign, Words of) const {
    constexpr std::array<std::string_view, 2> units{"minutes", "minute"};
    std::optional<int> minutes;
    if (are(offset, "half") && sign > 0) {
      minutes = half;
    } else if (are(offset, "quarter") || are(offset, "a quarter")) {
      minutes = quarter;
    } else {
      minutes = clock_.minutes(offset, units);
    }
    auto hour = clock_.hour(of);
    if (are(of, "noon") || are(of, "midday")) hour = noon;
    if (are(of, "midnight")) hour = 0;
    return minutes ? Clock::around(hour, sign * *minutes) : std::nullopt;
  }

  // `seven thirty`, `seven oh five`.
  [[nodiscard]] std::optional<TimeOfDay> in_a_row(Words words) const {
    constexpr int two_digits = 10;
    for (std::size_t i = 1; i < words.size(); ++i) {
      Words minutes = words.subspan(i);
      const bool is_small =
          take_front(minutes, "oh") || take_front(minutes, "o") || take_front(minutes, "zero");
      const auto minute = is_small ? clock_.number(minutes, 1, two_digits - 1)
                                   : clock_.number(minutes, two_digits, minutes_an_hour - 1);
      const auto hour = clock_.hour(words.first(i));
      if (hour && minute) return TimeOfDay{*hour, *minute};
    }
    return std::nullopt;
  }

  Clock clock_{"en"};
};

class German {
 public:
  static constexpr std::string_view at = "um";
  static constexpr std::span<const PartName> parts = german_parts;

  // The time without the word before it and the part of the day behind it.
  [[nodiscard]] std::optional<TimeOfDay> plain(Words words, bool is_marked) const {
    const auto oclock = std::ranges::find(words, "uhr");
    const auto before = static_cast<std::size_t>(oclock - words.begin());
    if (before + 1 < words.size()) {
      const auto minute = clock_.number(words.subspan(before + 1), 0, minutes_an_hour - 1);
      return minute ? Clock::around(clock_.hour(words.first(before)), *minute) : std::nullopt;
    }
    const bool has_unit = before < words.size();
    words = words.first(before);
    if (auto time = beside(words)) return time;
    return has_unit || is_marked ? Clock::around(clock_.hour(words), 0) : std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<TimeOfDay> beside(Words words) const {
    if (take_front(words, "halb")) return Clock::around(hour(words), -half);
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
      const int sign = words[i] == "nach" ? 1 : words[i] == "vor" ? -1 : 0;
      if (sign == 0) continue;
      constexpr std::array<std::string_view, 2> units{"minuten", "minute"};
      const Words offset = words.first(i);
      Words of = words.subspan(i + 1);
      const auto minutes = are(offset, "viertel") ? quarter : clock_.minutes(offset, units);
      if (!minutes) return std::nullopt;
      if (take_front(of, "halb")) return Clock::around(hour(of), sign * *minutes - half);
      return Clock::around(hour(of), sign * *minutes);
    }
    if (take_front(words, "dreiviertel") || take_front(words, "drei viertel")) {
      return Clock::around(hour(words), -quarter);
    }
    // `viertel acht`, in the east and south.
    if (take_front(words, "viertel")) return Clock::around(hour(words), quarter - minutes_an_hour);
    return std::nullopt;
  }

  [[nodiscard]] std::optional<int> hour(Words words) const {
    if (are(words, "mittag")) return noon;
    if (are(words, "mitternacht")) return 0;
    return clock_.hour(words);
  }

  Clock clock_{"de"};
};

template <typename Language>
std::optional<TimeOfDay> read_in(const Language& language, Words words) {
  const Part part = take_part(words, Language::parts);
  const bool is_marked = take_front(words, Language::at) || part != Part::none;
  const auto time = language.plain(words, is_marked);
  const auto hour = time ? hour_in(part, time->hour) : std::nullopt;
  if (!hour) return std::nullopt;
  return TimeOfDay{*hour, time->minute};
}

}  // namespace

std::optional<TimeOfDay> read_spoken_time(std::string_view text) {
  const auto words = answer_words(text);
  if (words.empty()) return std::nullopt;
  if (const auto time = read_in(English(), words)) return time;
  return read_in(German(), words);
}

}  // namespace conversed::flows
