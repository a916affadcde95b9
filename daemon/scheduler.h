#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "daemon/append_event.h"
#include "daemon/service.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/heartbeat.h"
#include "store/model/schedule.h"

namespace conversed::store {
class Store;
}

namespace conversed::daemon {

class Metrics;
class TimerClock;

struct SchedulerSettings {
  std::size_t max_timers = 50'000;  // in memory; the ones that are due first, others in the store
  std::size_t max_appending = 256;  // appends at once
  // The clock is looked at again at least so often, in case it jumped.
  std::chrono::milliseconds max_sleep{5'000};
  // After an append, or a look into the store, that failed; one timer tries for all of them.
  std::chrono::milliseconds retry{500};
  // How often schedules that recur are checked against the wall clock, beside at the start and when
  // it was set: another daemon's may have been ahead.
  std::chrono::milliseconds check_interval{3600'000};
  // How many records wait for their Turns. From `max_backlog` on only a few timers fire each
  // `backlog_pause`, so that those of a long downtime do not stand before what users say now. Null:
  // nobody knows. Called on the scheduler's thread.
  std::function<std::size_t()> backlog{};
  std::size_t max_backlog = 1'024;
  std::chrono::milliseconds backlog_pause{20};
  // What timers and follow-ups are due by; schedules go by the wall clock. Its offset is kept in
  // the store. Must outlive it. Null: all go by the wall clock.
  TimerClock* timer_clock = nullptr;
  // Where several daemons share the store: whether a timer, by its claim's id, is this one's to
  // append. The others' are left to them; all hear of new ones by the store's news, and whatever
  // `offer` is told of has been announced there. The clock then is somebody else's to keep. Empty:
  // all are. Called on the scheduler's thread.
  std::function<bool(std::string_view id)> mine{};
  // Where its thread has a heartbeat; must outlive it. Null: nobody watches.
  model::Heartbeats* heartbeats = nullptr;
};

// Appends an Event for each timer that falls due, `timer` for one of an execution, `time_out` for
// one of a question, `follow_up` for a follow-up, `inject` for a schedule: id "<claim's id>-t",
// accepted at the time of firing, in the order of due times. The claim is consumed by the Turn that
// takes the Event, so a crash, or an append of unknown outcome, may append it twice, and so may two
// daemons that both take it for theirs: the second one has no claim and no effect. What was
// cancelled meanwhile, or went with its session, is not appended; nor is what can't be read, which
// the log tells. What was put off meanwhile waits for its new time.
//
// The store is the truth; memory has when the timers that come first fall due, and nothing of what
// they say. Sleeps until the next one: nothing is polled but the clock.
//
// `offer`, `wake`, `look_again` and `waiting` are thread-safe and never block. One thread of its
// own does the work; it alone reads the store.
class Scheduler final : public Service {
 public:
  // All must outlive it.
  Scheduler(SchedulerSettings settings, store::Store& store, AppendEvent append,
            const model::Clock& clock, Metrics& metrics);
  ~Scheduler() override;

  [[nodiscard]] model::Result<void> start() override;
  void stop() override;
  [[nodiscard]] std::string_view name() const override;

  // What has just been committed; of a call, with `due_at` set.
  void offer(const model::PendingCall& timer);
  void offer(const model::FollowUp& follow_up);
  void offer(const model::Schedule& schedule);
  // Put off or forward; `due` is by the clock of timers.
  void offer(const model::Claim& claim, model::Timestamp due);

  // Looks at the clock, and at the backlog, again.
  void wake();

  // Others are `mine` than before: all timers are read again.
  void look_again();

  // Timers in memory; for tests and metrics.
  [[nodiscard]] std::size_t waiting() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace conversed::daemon
