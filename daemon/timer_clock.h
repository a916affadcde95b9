#pragma once

#include <chrono>
#include <functional>
#include <mutex>

#include "store/model/clock.h"

namespace conversed::daemon {

// The clock by which silence, expiry and sleep are waited for: it goes on evenly while the wall
// clock is set. Where it stands against the wall clock is its offset, which the Scheduler keeps in
// the store, so that what waits there still waits as long after a restart. What is due at a time of
// day goes by the wall clock instead. Where several daemons share a store they all follow its
// server's clock, and keep nothing. Thread-safe.
class TimerClock {
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

  // How far it is ahead of the wall clock. Notices here if that has been set since the last look.
  // Differences below two seconds are a clock that is disciplined, and are followed.
  [[nodiscard]] std::chrono::milliseconds offset();
  // Its time: both of one moment, however the wall clock is set meanwhile.
  [[nodiscard]] model::Timestamp now();

 private:
  void look();  // under the mutex

  const model::Clock& wall_;
  const Steady steady_;

  std::mutex mutex_;
  model::Timestamp last_wall_;
  std::chrono::milliseconds last_steady_;
  std::chrono::milliseconds offset_{0};
};

}  // namespace conversed::daemon
