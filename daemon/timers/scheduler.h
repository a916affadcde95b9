#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/log/append_event.h"
#include "daemon/ops/metrics.h"
#include "daemon/service/service.h"
#include "daemon/service/service_thread.h"
#include "daemon/timers/timer_clock.h"
#include "store/cluster/notifications.h"
#include "store/model/clock.h"
#include "store/model/schedule.h"
#include "store/runtime/heartbeat.h"
#include "store/store.h"

namespace conversed::daemon {

struct SchedulerSettings {
  std::size_t max_appending = 256;  // appends at once
  std::size_t max_in_hand = 1'024;  // timers that are appended, or whose mark is not known yet
  // The longest sleep between two looks at the clock, which may jump.
  std::chrono::milliseconds max_sleep{5'000};
  // A timer without a notification is found within this time.
  std::chrono::milliseconds look_interval{10'000};
  // The pause after a failed append or read. Then one timer is tried before the others.
  std::chrono::milliseconds retry{500};
  // How often recurring schedules are checked against the wall clock, in addition to the start and
  // to each time it was set: another daemon's clock may have been ahead.
  std::chrono::milliseconds check_interval{3600'000};
  // How many records wait for their Turns. From `max_backlog` on only a few timers fire each
  // `backlog_pause`, so that the timers of a long downtime do not delay users' messages. Null: the
  // backlog is unknown. Called on the scheduler's thread.
  std::function<std::size_t()> backlog{};
  std::size_t max_backlog = 1'024;
  std::chrono::milliseconds backlog_pause{20};
  // The clock of timers and follow-ups. Schedules use the wall clock; with `mine` they use this
  // clock, too. Its offset is kept in the store. Must outlive the Scheduler. Null: all use the wall
  // clock.
  TimerClock* timer_clock = nullptr;
  // In a cluster: whether this daemon appends the timer with this claim's id. The clock is then the
  // server's, and its offset is not kept. Empty: the daemon appends all timers. Called on the
  // scheduler's thread.
  std::function<bool(std::string_view id)> mine{};
  double sample = 1;                        // of the traces of schedules (model::in_sample)
  model::Heartbeats* heartbeats = nullptr;  // of its thread; must outlive it. Null: none
};

// Appends an Event for each timer that falls due: `timer` for an execution, `time_out` for a
// question, `follow_up` for a follow-up, `inject` for a schedule. Its id is "<claim's id>-t"; it is
// accepted at the time of firing, in the order of due times. The Turn that takes the Event consumes
// the claim. A timer that was cancelled, or erased with its session, is not appended. A timer that
// was put off waits for its new time.
//
// The scheduler knows when the next timer is due, and reads the due timers from the store while it
// has free slots. The memory only holds the timers in hand, which are not read again: a timer is in
// hand until the commit of its mark is known. Commits only wake the scheduler, in a cluster by a
// notification. A regular look finds timers whose notification was lost.
//
// Invariants:
// - A crash, an append of unknown outcome, or two daemons that both believe to own a timer append
//   its event twice. The second Event finds no claim and has no effect.
//   Kept by: Schedules.TwiceInOneBatchItHasAnEffectOnce.
// - A timer whose event is in the log is not appended again, unless `conversed new-epoch` cleared
//   that mark because the log was lost.
//   Kept by: SchedulerTest.OneWhoseEventIsInTheLogComesAgainOnlyWithAnotherLog.
// - A row that can't be read delays no other; it is logged and marked as `appended`.
//   Kept by: SchedulerTest.UnreadableTimerDelaysNoOther.
// - A recurring schedule is checked against the wall clock at the start, each hour, and when the
//   clock is set. Kept by: ClockJumps.ScheduleIsNeverSilentForLongerThanItsRuleSays.
// - In a cluster a timer belongs to the live scheduler that rendezvous hashing picks for its claim.
//   Each commit of timers notifies all schedulers. When members change, each reads all due timers
//   again. Kept by: SharedTimersTest.EachFiresItsOwnTimersWhereverTheyAreMade,
//   SharedTimersTest.WhenMembersChangeTimersChangeHands.
// - While many records wait for their Turns, only a few late timers fire at a time.
//   Kept by: SchedulerTest.LateTimersGiveWayToABacklog.
// - A timer of an erased session leaves no row.
//   Kept by: SchedulerTest.TimerOfAnErasedSessionAppendsNothing.
//
// `offer`, `wake`, `look_again` and `idle` are thread-safe and never block. One thread of its own
// does the work; it alone reads the store.
class Scheduler final : public Service {
 public:
  // Appends the timers of the shard. All must outlive it.
  Scheduler(SchedulerSettings settings, store::Shard& shard, AppendEvent append,
            const model::Clock& clock, Metrics& metrics);
  ~Scheduler() override { stop(); }

  [[nodiscard]] model::Result<void> start() override;
  void stop() override {
    heard_ = {};
    thread_.stop();
  }

  // Tells of a committed or moved timer or follow-up that is due at `due`.
  void offer(model::Timestamp due);
  void offer(const model::Schedule& schedule);

  // Looks at the clock, and at the backlog, again.
  void wake() {
    thread_.mailbox()->put([](Letters& letters) { letters.wake = true; });
  }

  // Reads all due timers again, since `mine` has changed.
  void look_again() {
    thread_.mailbox()->put([](Letters& letters) { letters.look_again = true; });
  }

  // Whether no timer is due or in hand. For tests.
  [[nodiscard]] bool idle() const { return thread_.mailbox()->quiet(); }

 private:
  using Due = store::Timers::Due;
  using SteadyClock = std::chrono::steady_clock;

  struct Letters {
    std::optional<model::Timestamp> due;  // the earliest that was offered
    std::vector<AppendEnd> appends;
    std::vector<Due> marked;
    bool wake = false;
    bool look_again = false;
    bool stop = false;
  };

  [[nodiscard]] model::Result<void> set_clock();
  void run();
  void look_at_clocks();
  void check_schedules();
  void read_letters();
  // By the clock of timers.
  [[nodiscard]] model::Timestamp now() const { return clock_.now() + offset_; }
  // How far the clock of timers is ahead of the clock of schedules. In a cluster both are the
  // server's.
  [[nodiscard]] std::chrono::milliseconds ahead_of_schedules() const {
    return settings_.mine ? std::chrono::milliseconds(0) : offset_;
  }
  [[nodiscard]] bool is_due() const { return due_ && *due_ <= looked_at_; }
  [[nodiscard]] SteadyClock::time_point next_look() const;
  void wait_for(model::Timestamp due);
  void read_again();
  [[nodiscard]] std::size_t may_fire();
  void fire_due();
  // Fires up to `left` timers of the next page, and lowers `left`. False: reads no further page
  // now.
  [[nodiscard]] bool fire_page(std::size_t& left);
  // False: the store fails.
  [[nodiscard]] bool fire(const Due& timer);
  void mark();
  void appended(const AppendEnd& append);
  void failed(std::string_view message, const model::Error& error);

  const SchedulerSettings settings_;
  store::Shard& shard_;
  const AppendEvent append_;
  const model::Clock& clock_;
  Metrics& metrics_;

  // The thread's own. All times are by the clock of timers. The due time of the first timer to
  // read. None: no timer waits.
  std::optional<model::Timestamp> due_ = model::Timestamp::min();
  std::optional<Due> read_up_to_;  // none: the next read begins with the earliest due timer
  std::unordered_map<std::string, Due> in_hand_;  // by the claim's id
  std::size_t appending_ = 0;                     // of those in hand
  std::vector<Due> to_mark_;                      // likewise
  std::chrono::milliseconds offset_{0};
  std::chrono::milliseconds kept_offset_{0};
  model::Timestamp looked_at_{};
  SteadyClock::time_point next_look_{};
  // The number of the last schedule that was checked; none: no check runs.
  std::optional<std::int64_t> checked_;
  SteadyClock::time_point next_check_{};
  bool failing_ = false;  // one timer at a time is tried
  SteadyClock::time_point not_before_{};
  bool stop_ = false;
  store::Notifications::Subscription heard_;
  ServiceThread<Letters> thread_;  // last: it uses all others
};

}  // namespace conversed::daemon
