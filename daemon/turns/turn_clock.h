#pragma once

#include <chrono>
#include <ctime>

namespace conversed::daemon {

// The backstop of a Turn's budget: measures the CPU time of this thread since the clock was made. A
// Turn that waits for the store, or whose process is suspended, uses none, so a slow machine fails
// no Turn. A Turn that uses more than the limit becomes a dead letter.
// Kept by: TurnClock.CountsTheTimeThatTheThreadWorksAndNotThatItWaits, test_neighbors.py
// Neighbors.test_a_turn_without_end_is_a_dead_letter_and_the_daemon_goes_on.
class TurnClock {
 public:
  explicit TurnClock(std::chrono::nanoseconds limit = std::chrono::seconds(5)) : limit_(limit) {}

  // For the thread that made it. The thread's clock takes a system call, so it is read only once
  // the wall time is past the limit.
  [[nodiscard]] bool is_overdue() const {
    if (std::chrono::steady_clock::now() - begun_ <= limit_) return false;
    return used_by_thread() - used_ > limit_;
  }

 private:
  static std::chrono::nanoseconds used_by_thread() {
    timespec used{};
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0) return {};
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  }

  const std::chrono::nanoseconds limit_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds used_ = used_by_thread();  // when the clock was made
};

}  // namespace conversed::daemon
