#pragma once

#include <chrono>

namespace conversed::daemon {

// The backstop of a Turn's budget: a clock of the CPU time that this thread has used since the
// clock was made. A Turn that waits for the store, or whose process stands still, uses none, so a
// slow machine fails no Turn. A Turn that is overdue although its budget is a second is a dead
// letter. Kept by: TurnClock.CountsTheTimeThatTheThreadWorksAndNotThatItWaits,
// test_neighbors.py Neighbors.test_a_turn_without_end_is_a_dead_letter_and_the_daemon_goes_on.
class TurnClock {
 public:
  explicit TurnClock(std::chrono::nanoseconds limit = std::chrono::seconds(5));

  // On the thread that made it.
  [[nodiscard]] bool is_overdue() const;

 private:
  const std::chrono::nanoseconds limit_;
  const std::chrono::steady_clock::time_point begun_;
  const std::chrono::nanoseconds used_;  // by then
};

}  // namespace conversed::daemon
