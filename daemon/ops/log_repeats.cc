#include "daemon/ops/log_repeats.h"

#include <utility>

namespace conversed::daemon::log {

bool Repeats::is_first(const std::string& line, TimePoint now) {
  return lines_.with([&](Lines& lines) {
    if (const auto known = lines.times.find(line); known != lines.times.end()) {
      ++known->second;
      return false;
    }
    if (lines.times.size() >= max_lines) return true;
    lines.times.emplace(line, 0);
    lines.ends.emplace_back(now + window, line);
    return true;
  });
}

std::vector<Repeats::Repeated> Repeats::take_due(TimePoint now) {
  std::vector<Repeated> due;
  lines_.with([&](Lines& lines) {
    while (!lines.ends.empty() && lines.ends.front().first <= now) {
      auto line = lines.times.extract(lines.ends.front().second);
      lines.ends.pop_front();
      if (line.mapped() > 0) due.push_back({std::move(line.key()), line.mapped()});
    }
  });
  return due;
}

}  // namespace conversed::daemon::log
