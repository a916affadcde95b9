#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/runtime/guarded.h"

namespace conversed::daemon::log {

// Counts lines that are repeated within a minute, so that a lasting failure is not written hundreds
// of times. Thread-safe.
class Repeats {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds window{60};
  static constexpr std::size_t max_lines = 256;  // in memory; further lines are written each time

  // Whether to write the line: it was not written within the last minute.
  [[nodiscard]] bool is_first(const std::string& line, TimePoint now);

  struct Repeated {
    std::string line;
    std::uint64_t times = 0;  // after the first
  };
  // Returns the lines that were repeated within their minute, once the minute is over. Returns each
  // line once.
  [[nodiscard]] std::vector<Repeated> take_due(TimePoint now);

 private:
  struct Lines {
    std::unordered_map<std::string, std::uint64_t> times;  // after the first
    std::deque<std::pair<TimePoint, std::string>> ends;    // of their minutes, earliest first
  };
  model::Guarded<Lines> lines_;
};

}  // namespace conversed::daemon::log
