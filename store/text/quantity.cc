#include "store/text/quantity.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

#include "store/text/ascii.h"

namespace conversed::text {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first, as `text_in` needs.
constexpr Unit duration_units[] = {
    {"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};
constexpr Unit size_units[] = {{"GiB", 1U << 30U}, {"MiB", 1U << 20U}, {"KiB", 1U << 10U}, {"", 1}};

// The number times its unit, in the smallest unit, at most `max`.
std::optional<std::uint64_t> parse_with_unit(std::string_view text, std::span<const Unit> units,
                                             std::uint64_t max) {
  const auto* digits_end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto digits = static_cast<std::size_t>(digits_end - text.begin());
  const auto number = parse_whole(text.substr(0, digits));
  const auto unit = std::ranges::find(units, text.substr(digits), &Unit::name);
  if (!number || unit == units.end() || *number > max / unit->factor) return std::nullopt;
  return *number * unit->factor;
}

std::string text_in(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) {
      return std::to_string(value / unit.factor) + std::string(unit.name);
    }
  }
  return "0" + std::string(units.back().name);
}

}  // namespace

std::optional<std::uint64_t> parse_whole(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  using Count = std::chrono::milliseconds::rep;
  const auto ms = parse_with_unit(text, duration_units,
                                  static_cast<std::uint64_t>(std::numeric_limits<Count>::max()));
  if (!ms) return std::nullopt;
  return std::chrono::milliseconds(static_cast<Count>(*ms));
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  return parse_with_unit(text, size_units, std::numeric_limits<std::uint64_t>::max());
}

std::string duration_text(std::chrono::milliseconds duration) {
  const auto ms = static_cast<std::uint64_t>(duration.count());
  return ms == 0 ? "0s" : text_in(ms, duration_units);
}

std::string size_text(std::uint64_t bytes) {
  return text_in(bytes, size_units);
}

std::string counted(std::int64_t count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

}  // namespace conversed::text
