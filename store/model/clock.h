#pragma once

#include <chrono>

namespace conversed::model {

// A point in UTC, with a resolution of milliseconds; stored as an integer since the Unix epoch.
using Timestamp = std::chrono::sys_time<std::chrono::milliseconds>;

[[nodiscard]] constexpr std::int64_t to_unix_ms(Timestamp time) {
  return time.time_since_epoch().count();
}
[[nodiscard]] constexpr Timestamp from_unix_ms(std::int64_t milliseconds) {
  return Timestamp(std::chrono::milliseconds(milliseconds));
}

// The seam through which all wall time is read, so that tests can set it. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Timestamp now() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const override {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  }
};

}  // namespace conversed::model
