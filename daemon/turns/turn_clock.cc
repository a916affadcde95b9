#include "daemon/turns/turn_clock.h"

#include <ctime>

namespace conversed::daemon {
namespace {

std::chrono::nanoseconds used_by_thread() {
  timespec used{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

TurnClock::TurnClock(std::chrono::nanoseconds limit)
    : limit_(limit), begun_(std::chrono::steady_clock::now()), used_(used_by_thread()) {}

// The clock of the thread takes a system call, and can't be past the limit before the other is.
bool TurnClock::is_overdue() const {
  if (std::chrono::steady_clock::now() - begun_ <= limit_) return false;
  return used_by_thread() - used_ > limit_;
}

}  // namespace conversed::daemon
