#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace conversed::bench {

// Collects durations and returns their percentiles. One thread at a time.
class Latency {
 public:
  void add(std::chrono::nanoseconds duration) { samples_.push_back(duration.count()); }

  // In milliseconds; 0 without samples. `share` is from 0 to 1.
  [[nodiscard]] double percentile_ms(double share) {
    if (samples_.empty()) return 0;
    const auto last = static_cast<double>(samples_.size() - 1);
    const auto place = samples_.begin() + static_cast<std::ptrdiff_t>(share * last);
    std::nth_element(samples_.begin(), place, samples_.end());
    return static_cast<double>(*place) / 1e6;
  }
  [[nodiscard]] std::size_t count() const { return samples_.size(); }

 private:
  std::vector<std::int64_t> samples_;
};

}  // namespace conversed::bench
