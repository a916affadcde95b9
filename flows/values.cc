// What the words of a bundle have to look like: durations, addresses, time zones, near
// misses.
#include <unicode/timezone.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <numeric>

#include "flows/fields.h"

namespace conversed::flows {
namespace {

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// Levenshtein's distance without regard to case. Both words are short: keys, names, types.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t longest_word = 64;
  if (word.size() > longest_word) return {};
  std::string_view best;
  // A third of the letters may be wrong: `txt` is near `text`, `foo` is near nothing.
  std::size_t least = std::min<std::size_t>(word.size() / 3 + 1, 3);
  for (const auto candidate : known) {
    if (candidate.size() > longest_word) continue;
    const std::size_t found = distance(word, candidate);
    if (found <= least && (best.empty() || found < least)) {
      best = candidate;
      least = found;
    }
  }
  return best.empty() ? std::string() : "; did you mean '" + std::string(best) + "'?";
}

std::string list_of(std::span<const std::string_view> words) {
  std::string list;
  for (const auto word : words) {
    if (!list.empty()) list += ", ";
    list += word;
  }
  return list;
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || text.front() == '-') return std::nullopt;
  const auto [unit_begin, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(unit_begin, static_cast<std::size_t>(end - unit_begin));
  std::int64_t factor = 0;
  if (unit == "ms") factor = 1;
  if (unit == "s") factor = 1000;
  if (unit == "m") factor = 60 * 1000;
  if (unit == "h") factor = 60 * 60 * 1000;
  if (unit == "d") factor = 24 * 60 * 60 * 1000;
  std::int64_t milliseconds = 0;
  if (factor == 0 || __builtin_mul_overflow(count, factor, &milliseconds)) return std::nullopt;
  return std::chrono::milliseconds(milliseconds);
}

bool is_email(std::string_view text) {
  const auto at = text.find('@');
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size()) return false;
  if (text.find('@', at + 1) != std::string_view::npos || text.size() > 254) return false;
  return std::none_of(text.begin(), text.end(), [](char c) {
    return (c >= 0 && c <= 0x20) || c == 0x7F || c == ',' || c == ';' || c == '<' || c == '>';
  });
}

bool is_time_zone(const std::string& name) {
  const auto id = icu::UnicodeString::fromUTF8(name);
  const std::unique_ptr<icu::TimeZone> zone(icu::TimeZone::createTimeZone(id));
  return zone != nullptr && *zone != icu::TimeZone::getUnknown();
}

std::size_t count_characters(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

bool has_control_characters(std::string_view utf8) {
  return std::any_of(utf8.begin(), utf8.end(),
                     [](char c) { return (c >= 0 && c < 0x20) || c == 0x7F; });
}

}  // namespace conversed::flows
