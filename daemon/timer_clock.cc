#include "daemon/timer_clock.h"

#include <ctime>
#include <utility>

namespace conversed::daemon {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds least_jump{2'000};
// Each change has the Scheduler read its timers anew.
constexpr milliseconds least_difference{200};

}  // namespace

milliseconds TimerClock::since_boot() {
  timespec time{};
  // Fails for a clock that the kernel does not know only; Linux knows this one since 2.6.39.
  (void)::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::floor<milliseconds>(std::chrono::seconds(time.tv_sec) +
                                          std::chrono::nanoseconds(time.tv_nsec));
}

TimerClock::TimerClock(const model::Clock& wall, Steady steady)
    : wall_(wall), steady_(std::move(steady)), last_wall_(wall_.now()), last_steady_(steady_()) {}

void TimerClock::set_offset(milliseconds offset) {
  const std::lock_guard lock(mutex_);
  offset_ = offset;
}

void TimerClock::follow(model::Timestamp theirs, milliseconds at, milliseconds within) {
  const std::lock_guard lock(mutex_);
  last_wall_ = wall_.now();
  last_steady_ = steady_();
  const milliseconds ahead = theirs + (last_steady_ - at) - last_wall_;
  if (std::chrono::abs(ahead - offset_) > least_difference + within) offset_ = ahead;
}

milliseconds TimerClock::offset() {
  const std::lock_guard lock(mutex_);
  look();
  return offset_;
}

model::Timestamp TimerClock::now() {
  const std::lock_guard lock(mutex_);
  look();
  return last_wall_ + offset_;
}

void TimerClock::look() {
  const auto wall = wall_.now();
  const auto steady = steady_();
  const milliseconds jump = (wall - last_wall_) - (steady - last_steady_);
  if (jump >= least_jump || jump <= -least_jump) offset_ -= jump;
  last_wall_ = wall;
  last_steady_ = steady;
}

}  // namespace conversed::daemon
