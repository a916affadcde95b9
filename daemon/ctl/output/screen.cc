#include "daemon/ctl/output/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <limits>

#include "store/text/times.h"

namespace conversed::ctl {
namespace {

Colors chosen = Colors::automatic;

winsize size_of(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool has_colors(bool is_terminal) {
  if (chosen != Colors::automatic) return chosen == Colors::always;
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return is_terminal && !is_dumb && !is_set("NO_COLOR");
}

// In the zone of the machine; empty if that can't be told.
std::string local_time(std::int64_t unix_seconds, const char* format) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  std::array<char, 64> text{};
  if (localtime_r(&time, &parts) == nullptr) return "";
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

}  // namespace

void choose_colors(Colors colors) {
  chosen = colors;
}

Screen screen() {
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  Screen screen{.is_terminal = is_terminal, .has_colors = has_colors(is_terminal)};
  if (is_terminal) {
    screen.columns = columns_of(STDOUT_FILENO);
    screen.lines = size_of(STDOUT_FILENO).ws_row;
    if (screen.lines == 0) screen.lines = 24;
  }
  screen.now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return screen;
}

std::size_t columns_of(int descriptor) {
  const auto columns = size_of(descriptor).ws_col;
  return columns > 0 ? columns : 80;
}

std::string age(std::int64_t unix_seconds, const Screen& screen) {
  struct Unit {
    std::int64_t seconds;
    std::int64_t until;  // a longer time is shown in the next unit
    const char* name;
  };
  constexpr std::int64_t minute = 60;
  constexpr std::int64_t hour = 60 * minute;
  constexpr std::int64_t day = 24 * hour;
  constexpr std::int64_t year = 365 * day;
  constexpr std::array units{Unit{1, minute, "s"}, Unit{minute, hour, "min"},
                             Unit{hour, 2 * day, "h"}, Unit{day, 2 * year, "d"}};
  // Times of answers may be any number.
  constexpr std::int64_t farthest = std::numeric_limits<std::int64_t>::max() / 2;
  const std::int64_t now = screen.now.time_since_epoch().count();
  const std::int64_t apart = std::clamp(unix_seconds, -farthest, farthest) - now;
  if (apart == 0) return "now";
  const std::int64_t length = std::abs(apart);
  const auto* const unit =
      std::ranges::find_if(units, [&](const Unit& u) { return length < u.until; });
  const auto text = unit == units.end() ? std::to_string(length / year) + " y"
                                        : std::to_string(length / unit->seconds) + ' ' + unit->name;
  return apart < 0 ? text + " ago" : "in " + text;
}

std::string full_time(std::int64_t unix_seconds, const Screen& screen) {
  const auto text = screen.is_terminal ? local_time(unix_seconds, "%Y-%m-%d %H:%M:%S %Z") : "";
  if (!text.empty()) return text + " (" + age(unix_seconds, screen) + ")";
  return text::utc_time(std::chrono::sys_seconds(std::chrono::seconds(unix_seconds)),
                        "%Y-%m-%dT%H:%M:%SZ");
}

std::string exact_time(std::int64_t unix_ms, const Screen& screen) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(std::chrono::milliseconds(unix_ms));
  auto rest = std::to_string(unix_ms - std::chrono::milliseconds(seconds).count());
  rest.insert(0, 3 - rest.size(), '0');
  const auto text = screen.is_terminal ? local_time(seconds.count(), "%Y-%m-%d %H:%M:%S.@ %Z") : "";
  const auto whole =
      text.empty() ? text::utc_time(std::chrono::sys_seconds(seconds), "%Y-%m-%d %H:%M:%S.@ UTC")
                   : text;
  if (whole.find('@') == std::string::npos) return whole;
  return whole.substr(0, whole.find('@')) + rest + whole.substr(whole.find('@') + 1);
}

std::string styled(std::string_view text, Style style, const Screen& screen) {
  constexpr std::array codes{"", "\x1b[1m", "\x1b[32m", "\x1b[31m", "\x1b[33m"};
  if (!screen.has_colors || style == Style::plain || text.empty()) return std::string(text);
  return codes.at(static_cast<std::size_t>(style)) + std::string(text) + "\x1b[0m";
}

Style style_of(std::string_view state) {
  constexpr std::array good{"idle", "done", "on", "delivered", "replayed"};
  constexpr std::array bad{"error", "failing", "dead", "new"};
  constexpr std::array waiting{"busy",       "queued", "active",  "cancelling", "pending",
                               "recovering", "left",   "waiting", "paused"};
  const auto is_one = [&](const auto& states) {
    return std::ranges::find(states, state) != states.end();
  };
  if (is_one(good)) return Style::good;
  if (is_one(bad)) return Style::bad;
  return is_one(waiting) ? Style::waiting : Style::plain;
}

}  // namespace conversed::ctl
