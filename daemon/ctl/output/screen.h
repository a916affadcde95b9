#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace conversed::ctl {

// The destination of a program's output. A terminal gets columns that fit it, local times and ages.
// A file or pipe gets one form for programs, which depends on neither the time nor the zone.
struct Screen {
  bool is_terminal = false;
  bool has_colors = false;
  std::size_t columns = 0;         // of a terminal
  std::size_t lines = 0;           // of a terminal
  std::chrono::sys_seconds now{};  // ages are counted to it
};

// `--color`. `automatic`: colors on a terminal, unless NO_COLOR is set or the terminal is `dumb`.
enum class Colors : std::uint8_t { automatic, always, never };
void choose_colors(Colors colors);  // at the start of the program

// Standard output, as it is now.
[[nodiscard]] Screen screen();

// The columns of the terminal of this file descriptor; 80 if they are unknown.
[[nodiscard]] std::size_t columns_of(int descriptor);

// The distance to `screen.now`: `3 min ago`, `in 2 h`.
[[nodiscard]] std::string age(std::int64_t unix_seconds, const Screen& screen);

// A time of Unix in full: on a terminal `2026-11-21 15:03:59 CET (3 min ago)`, in the zone of the
// machine; else `2026-11-21T14:03:59Z`.
[[nodiscard]] std::string full_time(std::int64_t unix_seconds, const Screen& screen);

// Such a time with milliseconds and zone: on a terminal in the zone of the machine, else in UTC.
[[nodiscard]] std::string exact_time(std::int64_t unix_ms, const Screen& screen);

enum class Style : std::uint8_t { plain, header, good, bad, waiting };
// The text in the colors of a style, if the screen has colors.
[[nodiscard]] std::string styled(std::string_view text, Style style, const Screen& screen);
// Of a state, such as `idle`, `busy` or `error`.
[[nodiscard]] Style style_of(std::string_view state);

}  // namespace conversed::ctl
