#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "store/model/clock.h"

namespace conversed::tests {

// A clock that moves only when the test moves it. Thread-safe.
class ManualClock final : public model::Clock {
 public:
  explicit ManualClock(model::Timestamp start = model::from_unix_ms(1'800'000'000'000))
      : now_ms_(model::to_unix_ms(start)) {}

  [[nodiscard]] model::Timestamp now() const override {
    return model::from_unix_ms(now_ms_.load());
  }
  void set(model::Timestamp time) { now_ms_.store(model::to_unix_ms(time)); }
  void advance(std::chrono::milliseconds time) { now_ms_.fetch_add(time.count()); }

 private:
  std::atomic<std::int64_t> now_ms_;
};

}  // namespace conversed::tests
