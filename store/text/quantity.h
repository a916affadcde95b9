#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Numbers, durations and sizes as people write them in settings and Flows. A parser gives nullopt
// for a text that is not exactly of the form.
namespace conversed::text {

// Decimal digits without sign, spaces or leading zeros: `010` is ten to some YAML readers, eight to
// others.
[[nodiscard]] std::optional<std::uint64_t> parse_whole(std::string_view text);

// A whole number and one of ms, s, m, h, d, without space: `500ms`, `10s`, `5m`, `2h`, `3d`.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);
// A regular expression (ECMA-262). Each text that it matches as a whole is a duration.
inline constexpr std::string_view duration_expression = "(0|[1-9][0-9]{0,9})(ms|s|m|h|d)";

// A whole number of bytes, or of KiB, MiB or GiB: `65536`, `64KiB`.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

// In the largest unit that divides it: 90 s is `90s`, 120 s is `2m`. The duration is not negative.
[[nodiscard]] std::string duration_text(std::chrono::milliseconds duration);
[[nodiscard]] std::string size_text(std::uint64_t bytes);

// `1 event`, `2 events`, for an English noun whose plural ends in s.
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun);

}  // namespace conversed::text
