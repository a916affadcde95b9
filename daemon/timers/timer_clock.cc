#include "daemon/timers/timer_clock.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace conversed::daemon {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds least_jump{2'000};
// Each change makes the Scheduler read its timers again.
constexpr milliseconds least_difference{200};
// After this time a wall clock that was set counts as right.
constexpr milliseconds probation = std::chrono::days(1);

}  // namespace

milliseconds TimerClock::since_boot() {
  timespec time{};
  // The call fails only for an unknown clock. Linux has this clock since 2.6.39.
  (void)::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::floor<milliseconds>(std::chrono::seconds(time.tv_sec) +
                                          std::chrono::nanoseconds(time.tv_nsec));
}

TimerClock::TimerClock(const model::Clock& wall, Steady steady)
    : wall_(wall), steady_(std::move(steady)), last_wall_(wall_.now()), last_steady_(steady_()) {}

void TimerClock::set_offset(milliseconds offset) {
  const std::lock_guard lock(mutex_);
  offset_ = offset;
  if (offset != milliseconds(0)) set_at_ = steady_();
}

void TimerClock::follow(model::Timestamp theirs, milliseconds at, milliseconds within) {
  const std::lock_guard lock(mutex_);
  follows_ = true;
  last_wall_ = wall_.now();
  last_steady_ = steady_();
  const milliseconds ahead = theirs + (last_steady_ - at) - last_wall_;
  if (std::chrono::abs(ahead - offset_) > least_difference + within) offset_ = ahead;
}

TimerClock::Reading TimerClock::look() const {
  const auto wall = wall_.now();
  const auto steady = steady_();
  const milliseconds jump = (wall - last_wall_) - (steady - last_steady_);
  if (jump >= least_jump || jump <= -least_jump) {
    offset_ -= jump;
    set_at_ = steady;
  }
  last_wall_ = wall;
  last_steady_ = steady;
  return {wall, offset_};
}

TimerClock::Reading TimerClock::read() const {
  const std::lock_guard lock(mutex_);
  return look();
}

model::Timestamp TimerClock::now() const {
  const Reading reading = read();
  return reading.wall + reading.offset;
}

model::Timestamp TimerClock::schedule_now() const {
  const std::lock_guard lock(mutex_);
  const auto [wall, offset] = look();
  return follows_ ? wall + offset : wall;
}

model::Timestamp TimerClock::retention_now() const {
  const std::lock_guard lock(mutex_);
  const auto [wall, offset] = look();
  if (follows_) return wall + offset;
  const bool on_probation = set_at_ && last_steady_ - *set_at_ < probation;
  return on_probation ? wall + std::min(offset, milliseconds(0)) : wall;
}

}  // namespace conversed::daemon
