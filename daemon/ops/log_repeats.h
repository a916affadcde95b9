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

// Counts lines that come again within a minute of their first, so that a failure that lasts is not
// written hundreds of times. Thread-safe.
class Repeats {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds window{60};
  static constexpr std::size_t max_lines = 256;  // remembered; further ones are written each time

  // Whether the line is to be written: it was not within the last minute.
  [[nodiscard]] bool is_first(const std::string& line, TimePoint now);

  struct Repeated {
    std::string line;
    std::uint64_t times = 0;  // after the first
  };
  // Those whose minute is over and that came again in it. Each is told once.
  [[nodiscard]] std::vector<Repeated> take_due(TimePoint now);

 private:
  struct Lines {
    std::unordered_map<std::string, std::uint64_t> times;  // after the first
    std::deque<std::pair<TimePoint, std::string>> ends;    // of their minutes, the next one first
  };
  model::Guarded<Lines> lines_;
};

}  // namespace conversed::daemon::log
