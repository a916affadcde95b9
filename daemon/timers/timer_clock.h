#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

#include "store/model/clock.h"

namespace conversed::daemon {

// The clock of timers. It runs evenly when the wall clock is set. Each kind of wait uses one clock:
//
// - A duration in a row of the store (a sleep, a silence, a retry, a lease, the life of a key, a
//   token or a cursor) uses this clock, and the row holds this clock's time. Setting the wall clock
//   does not change the duration, also across a restart.
//   Kept by: ClockJumps.SleepQuestionAndFollowUpComeWhenTheirTimeIsOver.
// - A duration that ends with the process (rate limits, lock-outs, time-outs of connections) uses
//   std::chrono::steady_clock. Kept by: ClockJumps.LockOutAndRateLimitIgnoreTheWallClock.
// - A date (a schedule, `at`, a quota's month, every time that is shown) uses the wall clock, in a
//   cluster the server's clock (`schedule_now`). A schedule waits for no longer than its rule says.
//   Kept by: ClockJumps.ScheduleIsNeverSilentForLongerThanItsRuleSays,
//   SchedulerTest.ScheduleOfAClusterGoesByTheServersClock.
// - Retention (transcripts, dead letters, ended jobs) uses `retention_now`, so that a clock that is
//   wrong for less than a day removes nothing.
//   Kept by: ClockJumps.NothingYoungIsRemovedOnADayWithAWrongClock.
//
// The Scheduler keeps the offset to the wall clock in the store. Daemons that share a store follow
// the clock of its server and keep no offset. A wall clock that was set while the daemon was down
// looks like a long downtime. Thread-safe.
class TimerClock final : public model::Clock {
 public:
  // A clock that is never set, and that runs while the machine is suspended.
  using Steady = std::function<std::chrono::milliseconds()>;
  [[nodiscard]] static std::chrono::milliseconds since_boot();

  // `wall` must outlive it.
  explicit TimerClock(const model::Clock& wall, Steady steady = since_boot);

  // Takes the offset that an earlier run has stored. Before any other call.
  void set_offset(std::chrono::milliseconds offset);

  // Follows another clock, which showed `theirs` when the steady clock showed `at`, with an error
  // of up to `within`. A difference within that error is ignored.
  void follow(model::Timestamp theirs, std::chrono::milliseconds at,
              std::chrono::milliseconds within);
  [[nodiscard]] std::chrono::milliseconds steady_now() const { return steady_(); }

  [[nodiscard]] model::Timestamp now() const override;

  // How far this clock is ahead of the wall clock. Like `now`, this call notices that the wall
  // clock was set since the last look. Differences below two seconds, such as those of NTP, are
  // followed.
  [[nodiscard]] std::chrono::milliseconds offset() const { return read().offset; }

  // The time and the offset at one moment.
  struct Reading {
    model::Timestamp wall;
    std::chrono::milliseconds offset;
  };
  [[nodiscard]] Reading read() const;

  // The clock of schedules: the wall clock, in a cluster the server's, so that daemons agree and no
  // schedule fires early.
  [[nodiscard]] model::Timestamp schedule_now() const;

  // The clock of retention: the wall clock, and for a day after it was set (or after a start with
  // an offset) the earlier of the two. In a cluster the server's.
  [[nodiscard]] model::Timestamp retention_now() const;

 private:
  [[nodiscard]] Reading look() const;  // under the lock

  const model::Clock& wall_;
  const Steady steady_;

  mutable std::mutex mutex_;
  mutable model::Timestamp last_wall_;
  mutable std::chrono::milliseconds last_steady_;
  mutable std::chrono::milliseconds offset_{0};
  mutable std::optional<std::chrono::milliseconds> set_at_;  // on the steady clock
  bool follows_ = false;
};

// Makes a Clock of another time of TimerClock.
template <model::Timestamp (TimerClock::*other_now)() const>
class ClockOf final : public model::Clock {
 public:
  // `clock` must outlive it.
  explicit ClockOf(const TimerClock& clock) : clock_(clock) {}
  [[nodiscard]] model::Timestamp now() const override { return (clock_.*other_now)(); }

 private:
  const TimerClock& clock_;
};
using ScheduleClock = ClockOf<&TimerClock::schedule_now>;
using RetentionClock = ClockOf<&TimerClock::retention_now>;

}  // namespace conversed::daemon
