#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

#include "store/model/clock.h"

namespace conversed::daemon {

// The clock that everything goes by that waits for a while: it goes on evenly while the wall clock
// is set. The rule, for whatever waits:
//
// - A while (a sleep, a silence, a retry, a lease, the life of a key, a token or a cursor) is
// waited
//   for by this clock, and the row holds this clock's time. So a wall clock that is set, by seconds
//   or years, forth or back, neither ends nor lengthens it, running or across a restart.
// - What lasts no longer than the process and is in no row (rate limits, lock-outs, time-outs of
//   connections) goes by std::chrono::steady_clock.
// - A time of day or a month that people know (a schedule, `at`, a quota's month, what is shown)
//   goes by the wall clock, whatever it says; a schedule of several daemons goes by the server's
//   clock (`schedule_now`). What recurs is put right when the clock is: a
//   schedule never waits for longer than its rule says.
// - What is old by its date (transcripts, dead letters, jobs that are over) is removed by
//   `retention_now`, so that a clock that is wrong for less than a day removes nothing.
//
// Where it stands against the wall clock is its offset, which the Scheduler keeps in the store.
// Where several daemons share a store they all follow its server's clock, and keep nothing. A clock
// that was set while the daemon was down can't be told from a long downtime. Thread-safe.
class TimerClock final : public model::Clock {
 public:
  // Time that nobody sets, and that goes on while the machine is suspended.
  using Steady = std::function<std::chrono::milliseconds()>;
  [[nodiscard]] static std::chrono::milliseconds since_boot();

  // `wall` must outlive it.
  explicit TimerClock(const model::Clock& wall, Steady steady = since_boot);

  // What an earlier run has kept; before anybody else asks.
  void set_offset(std::chrono::milliseconds offset);

  // Follows another clock instead, which said `theirs` when the steady one said `at`, give or take
  // `within`. What that can't tell from a clock that is disciplined changes nothing.
  void follow(model::Timestamp theirs, std::chrono::milliseconds at,
              std::chrono::milliseconds within);
  [[nodiscard]] std::chrono::milliseconds steady_now() const { return steady_(); }

  [[nodiscard]] model::Timestamp now() const override;

  // How far it is ahead of the wall clock. Notices here, as `now` does, if that has been set since
  // the last look. Differences below two seconds are a clock that is disciplined, and are followed.
  [[nodiscard]] std::chrono::milliseconds offset() const;

  // Both at one moment.
  struct Reading {
    model::Timestamp wall;
    std::chrono::milliseconds offset;
  };
  [[nodiscard]] Reading read() const;

  // The clock that schedules go by: the wall clock; of daemons that follow a server's clock, that
  // one, so that they agree, and none fires early.
  [[nodiscard]] model::Timestamp schedule_now() const;

  // The wall clock, but the earlier of the two for a day after it was set, or after a start with an
  // offset. Of daemons that follow a server's clock, that one.
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

// What people plan by the clock goes by what this clock says.
class ScheduleClock final : public model::Clock {
 public:
  // `clock` must outlive it.
  explicit ScheduleClock(const TimerClock& clock) : clock_(clock) {}
  [[nodiscard]] model::Timestamp now() const override { return clock_.schedule_now(); }

 private:
  const TimerClock& clock_;
};

// What is removed for its age is as old as this clock says.
class RetentionClock final : public model::Clock {
 public:
  // `clock` must outlive it.
  explicit RetentionClock(const TimerClock& clock) : clock_(clock) {}
  [[nodiscard]] model::Timestamp now() const override { return clock_.retention_now(); }

 private:
  const TimerClock& clock_;
};

}  // namespace conversed::daemon
