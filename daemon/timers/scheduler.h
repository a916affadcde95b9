#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "daemon/log/append_event.h"
#include "daemon/service/service.h"
#include "store/model/clock.h"
#include "store/model/schedule.h"
#include "store/runtime/heartbeat.h"

namespace conversed::store {
class Store;
}

namespace conversed::daemon {

class Metrics;
class TimerClock;

struct SchedulerSettings {
  std::size_t max_appending = 256;  // appends at once
  std::size_t max_in_hand = 1'024;  // timers that are appended, or whose mark is not known yet
  // The clock is looked at again at least so often, in case it jumped.
  std::chrono::milliseconds max_sleep{5'000};
  // A timer that no commit told of is found within this time; with `mine`, `shared_look_interval`.
  std::chrono::milliseconds look_interval{5'000};
  std::chrono::milliseconds shared_look_interval{500};
  // After an append, or a look into the store, that failed; one timer tries for all of them.
  std::chrono::milliseconds retry{500};
  // How often schedules that recur are checked against the wall clock, beside at the start and when
  // it was set: another daemon's may have been ahead.
  std::chrono::milliseconds check_interval{3600'000};
  // How many records wait for their Turns. From `max_backlog` on only a few timers fire each
  // `backlog_pause`, so that those of a long downtime do not stand before what users say now. Null:
  // the backlog is not known. Called on the scheduler's thread.
  std::function<std::size_t()> backlog{};
  std::size_t max_backlog = 1'024;
  std::chrono::milliseconds backlog_pause{20};
  // What timers and follow-ups are due by; schedules go by the wall clock, and with `mine` by this
  // one. Its offset is kept in the store. Must outlive it. Null: all go by the wall clock.
  TimerClock* timer_clock = nullptr;
  // Where several daemons share the store: whether a timer, by its claim's id, is this one's to
  // append. The clock is then the server's, and its offset is not kept. Empty: all are. Called on
  // the scheduler's thread.
  std::function<bool(std::string_view id)> mine{};
  // Where its thread has a heartbeat; must outlive it. Null: it is not watched.
  model::Heartbeats* heartbeats = nullptr;
};

// Appends an Event for each timer that falls due, `timer` for one of an execution, `time_out` for
// one of a question, `follow_up` for a follow-up, `inject` for a schedule: id "<claim's id>-t",
// accepted at the time of firing, in the order of due times. The claim is consumed by the Turn that
// takes the Event, so a crash, or an append of unknown outcome, may append it twice, and so may two
// daemons that both take it for theirs: the second one has no claim and no effect. A timer that was
// cancelled meanwhile, or went with its session, is not appended; nor is one that can't be read,
// which the log tells. One that was put off meanwhile waits for its new time.
//
// Rows drive, memory only excludes: the scheduler knows when the next timer is due, and reads the
// due ones from the store while it has free slots. A timer is in hand until the commit of its mark
// is known. Commits only wake it; a timer of another daemon's commit is found by a look.
//
// `offer`, `wake`, `look_again` and `idle` are thread-safe and never block. One thread of its own
// does the work; it alone reads the store.
class Scheduler final : public Service {
 public:
  // All must outlive it.
  Scheduler(SchedulerSettings settings, store::Store& store, AppendEvent append,
            const model::Clock& clock, Metrics& metrics);
  ~Scheduler() override;

  [[nodiscard]] model::Result<void> start() override;
  void stop() override;
  [[nodiscard]] std::string_view name() const override;

  // A timer or follow-up has been committed, or moved, that falls due then.
  void offer(model::Timestamp due);
  void offer(const model::Schedule& schedule);

  // Looks at the clock, and at the backlog, again.
  void wake();

  // Others are `mine` than before: what is due is read again from its beginning.
  void look_again();

  // Whether no timer is due or in hand. For tests.
  [[nodiscard]] bool idle() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace conversed::daemon
