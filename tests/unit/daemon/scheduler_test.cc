#include "daemon/timers/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <vector>

#include "daemon/ops/metrics.h"
#include "daemon/timers/timer_clock.h"
#include "store/sql/sql.h"
#include "tests/unit/daemon/world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using model::Errc;

// Remembers the last time that it returned. A clock that follows `seen()` is never ahead of it.
class SeenClock final : public model::Clock {
 public:
  explicit SeenClock(const model::Clock& clock) : clock_(clock), seen_(clock.now()) {}
  [[nodiscard]] model::Timestamp now() const override { return seen_ = clock_.now(); }
  [[nodiscard]] model::Timestamp seen() const { return seen_; }

 private:
  const model::Clock& clock_;
  mutable std::atomic<model::Timestamp> seen_;
};

class SchedulerTest : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    import({{ "web", "" }});
    start();
  }
  void TearDown() override {
    if (scheduler_) scheduler_->stop();
  }

  void start(const SchedulerSettings& settings = {}) {
    scheduler_.reset();
    scheduler_ =
        std::make_unique<Scheduler>(settings, store_->first(), sink_.append(), clock_, metrics_);
    ASSERT_TRUE(scheduler_->start());
  }
  model::PendingCall timer(const std::string& id, std::chrono::milliseconds in) {
    model::PendingCall pending;
    pending.id = id;
    pending.session = key("user-" + id);
    pending.trace_id = model::new_trace_id();
    pending.due_at = clock_.now() + in;
    return pending;
  }
  void commit_timer(const model::PendingCall& pending) {
    auto commit = turn(pending.session, {});
    commit.calls.started.push_back(pending);
    commit_now(std::move(commit));
  }
  model::PendingCall put(const std::string& id, std::chrono::milliseconds in) {
    auto pending = timer(id, in);
    commit_timer(pending);
    scheduler_->offer(*pending.due_at);
    return pending;
  }
  void write(const std::string& sql) {
    ASSERT_TRUE(
        store_->committer().write_and_wait([&](store::Writer& writer) -> model::Result<void> {
          writer.connection().script(sql);
          return {};
        }));
  }
  std::vector<std::string> fired() {
    std::vector<std::string> ids;
    for (const auto& event : sink_.events()) ids.push_back(event.claim->id);
    return ids;
  }
  void advance(std::chrono::milliseconds by) {
    clock_.advance(by);
    scheduler_->wake();
  }
  [[nodiscard]] bool comes_to_rest() {
    return eventually([&] { return scheduler_->idle(); });
  }

  Metrics metrics_;
  EventSink sink_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, TimerIsAppendedWhenItsTimeHasComeAndNotBefore) {
  const auto pending = put("t1", 10s);
  ASSERT_TRUE(comes_to_rest());
  advance(9'999ms);
  put("probe", 0ms);
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).claim->id, "probe");
  advance(1ms);
  ASSERT_TRUE(sink_.wait_for(2));
  const auto event = sink_.events().at(1);
  EXPECT_EQ(event.id.substr(0, 9), model::id_prefix(clock_.now()));
  EXPECT_EQ(event.type, model::EventType::timer);
  EXPECT_EQ(event.session, pending.session);
  EXPECT_EQ(event.trace_id, pending.trace_id);
  EXPECT_EQ(event.accepted_at, clock_.now());
  EXPECT_EQ(event.claim, (model::Claim{model::Claim::Kind::timer, "t1"}));
  ASSERT_TRUE(comes_to_rest());
  EXPECT_EQ(metrics_.timers_fired.value(), 2U);
}

TEST_F(SchedulerTest, ScheduleIsAnInjectAtItsTimeAndNoneOnceItIsCancelled) {
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = key("ann");
  schedule.text = "later";
  schedule.timezone = "UTC";
  schedule.due_at = clock_.now() + 10s;
  model::Schedule cancelled = schedule;
  cancelled.id = model::new_id();
  for (const auto& each : {schedule, cancelled}) {
    ASSERT_TRUE(store_->first().schedules().create(each, std::nullopt));
    scheduler_->offer(each);
  }
  ASSERT_TRUE(store_->first().schedules().cancel(cancelled.session.project_id, cancelled.id));
  advance(10s);
  ASSERT_TRUE(comes_to_rest());
  ASSERT_EQ(sink_.events().size(), 1U);
  const auto event = sink_.events().at(0);
  EXPECT_TRUE(model::is_id(event.id)) << event.id;
  EXPECT_EQ(event.type, model::EventType::inject);
  EXPECT_EQ(event.text, "later");
  EXPECT_EQ(event.claim, (model::Claim{model::Claim::Kind::schedule, schedule.claim()}));
}

TEST_F(SchedulerTest, TimersOfAllKindsAreFoundInTheOrderOfTheirTimes) {
  scheduler_->stop();
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = key("ann");
  schedule.text = "later";
  schedule.timezone = "UTC";
  schedule.due_at = clock_.now() - 2h;
  ASSERT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
  commit_timer(timer("t1", -3h));
  commit_timer(timer("t2", -1h));
  start();
  ASSERT_TRUE(sink_.wait_for(3));
  EXPECT_EQ(sink_.events().at(0).claim->id, "t1");
  EXPECT_EQ(sink_.events().at(1).claim->id, schedule.claim());
  EXPECT_EQ(sink_.events().at(2).claim->id, "t2");
}

TEST_F(SchedulerTest, EarlierTimerOvertakesALaterOne) {
  put("late", 60s);
  put("early", 1s);
  ASSERT_TRUE(comes_to_rest());
  advance(1s);
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).claim->id, "early");
}

TEST_F(SchedulerTest, TimersOfTheStoreAreFoundAtTheStart) {
  scheduler_->stop();
  commit_timer(timer("past", -1h));
  commit_timer(timer("soon", 5s));
  start();
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).claim->id, "past");
  advance(5s);
  ASSERT_TRUE(sink_.wait_for(2));
  EXPECT_EQ(sink_.events().at(1).claim->id, "soon");
}

TEST_F(SchedulerTest, FewInMemoryAreEnoughForManyInOrder) {
  scheduler_->stop();
  start({.max_in_hand = 5});
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 60; ++i) {
    put("t" + std::to_string(i), std::chrono::milliseconds(1 + random() % 10'000));
  }
  for (int step = 0; step < 100; ++step) advance(100ms);
  ASSERT_TRUE(sink_.wait_for(60));
  ASSERT_TRUE(comes_to_rest());
  EXPECT_EQ(sink_.events().size(), 60U) << "each timer comes once";
}

TEST_F(SchedulerTest, FailedAppendIsTriedAgainUnderTheSameId) {
  sink_.fail(2, Errc::unavailable);
  put("t1", 0ms);
  ASSERT_TRUE(eventually([&] {
    advance(100ms);
    return sink_.events().size() == 1;
  }));
  EXPECT_EQ(sink_.tries(), 3);
  EXPECT_EQ(sink_.events().at(0).claim->id, "t1");
  EXPECT_EQ(sink_.events().at(0).claim->id, "t1");
}

TEST_F(SchedulerTest, WhileTheLogIsDownOneTimerTriesForAll) {
  scheduler_->stop();
  std::vector<std::string> all;
  for (int i = 10; i < 30; ++i) {
    commit_timer(timer("t" + std::to_string(i), std::chrono::milliseconds(i - 100)));
    all.push_back("t" + std::to_string(i));
  }
  sink_.fail(1'000'000, Errc::unavailable);
  start({.max_appending = 3, .retry = 1h});
  ASSERT_TRUE(eventually([&] { return sink_.tries() == 3; }));
  for (int probes = 1; probes <= 20; ++probes) {
    // Waits until the last append is known to have failed.
    ASSERT_TRUE(eventually([&] {
      scheduler_->wake();
      return sink_.tries() >= 3 + probes;
    }));
  }
  sink_.fail(0, Errc::unavailable);
  ASSERT_TRUE(eventually([&] {
    scheduler_->wake();
    return scheduler_->idle() && sink_.events().size() >= all.size();
  }));
  EXPECT_EQ(fired(), all) << "each once, the oldest first";
}

TEST_F(SchedulerTest, UnreadableTimerDelaysNoOther) {
  scheduler_->stop();
  model::Schedule schedule;
  schedule.session = key("ann");
  schedule.text = "later";
  schedule.timezone = "UTC";
  std::vector<model::Schedule> made;
  for (const auto in : {-3h, -2h, -1h}) {
    schedule.id = model::new_id();
    schedule.due_at = clock_.now() + in;
    ASSERT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
    made.push_back(schedule);
  }
  write("UPDATE schedules SET message = '[' WHERE id = '" + made[0].id + "';" +
        "UPDATE schedules SET key = 'nobody' WHERE id = '" + made[1].id + "'");
  start();
  ASSERT_TRUE(sink_.wait_for(1));
  ASSERT_TRUE(comes_to_rest());
  EXPECT_EQ(fired(), (std::vector{made[2].claim()}));
}

TEST_F(SchedulerTest, LateTimersGiveWayToABacklog) {
  scheduler_->stop();
  std::vector<std::string> all;
  for (int i = 100; i < 200; ++i) {
    commit_timer(timer("t" + std::to_string(i), std::chrono::milliseconds(i - 1000)));
    all.push_back("t" + std::to_string(i));
  }
  std::atomic<std::size_t> backlog{500};
  start({.backlog = [&] { return backlog.load(); }, .max_backlog = 500, .backlog_pause = 1h});
  ASSERT_TRUE(eventually(
      [&] { return store_->first().timers().due(clock_.now(), {}, 200)->timers.size() == 84; }));
  EXPECT_EQ(sink_.events().size(), 16U) << "late timers continue at a low rate";
  backlog = 499;
  scheduler_->wake();
  ASSERT_TRUE(comes_to_rest());
  EXPECT_EQ(fired(), all) << "each once, the oldest first";
}

TEST_F(SchedulerTest, RepeatedOffersDoNoHarm) {
  const auto pending = put("t1", 0ms);
  for (int i = 0; i < 100; ++i) scheduler_->offer(*pending.due_at);
  put("last", 0ms);
  ASSERT_TRUE(eventually([&] {
    const auto ids = fired();
    return std::ranges::find(ids, "last") != ids.end() && scheduler_->idle();
  }));
}

TEST_F(SchedulerTest, TimersKeepTheirWaitWhenTheClockIsSet) {
  std::atomic<std::int64_t> set_by{0};  // the jump of the wall clock
  const SeenClock seen(clock_);
  const auto steadily = [&] {
    return seen.seen().time_since_epoch() - std::chrono::milliseconds(set_by.load());
  };
  TimerClock timer_clock(seen, steadily);
  const auto jump = [&](std::chrono::milliseconds by) {
    // The scheduler's thread may look in between. It must not see a time too early.
    if (by > 0ms) set_by += by.count();
    clock_.advance(by);
    if (by < 0ms) set_by += by.count();
    scheduler_->wake();
  };
  // Each id once. Without Turns the rows stay, so a timer that is both read and offered may come
  // twice.
  const auto ids = [&] {
    std::vector<std::string> once;
    for (auto& id : fired()) {
      if (std::ranges::find(once, id) == once.end()) once.push_back(id);
    }
    return once;
  };
  start({.timer_clock = &timer_clock});
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = key("ann");
  schedule.text = "later";
  schedule.timezone = "UTC";
  schedule.due_at = clock_.now() + 25h;
  ASSERT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
  scheduler_->offer(schedule);
  put("t1", 20min);
  ASSERT_TRUE(comes_to_rest());
  jump(24h);
  advance(19min);
  put("probe", -24h);
  ASSERT_TRUE(eventually([&] { return !ids().empty(); }));
  EXPECT_EQ(ids(), (std::vector<std::string>{"probe"}));
  advance(1min);
  ASSERT_TRUE(eventually([&] { return ids().size() >= 2; }));
  EXPECT_EQ(ids().back(), "t1");
  advance(40min);  // 25 hours by the wall clock
  ASSERT_TRUE(eventually([&] { return ids().size() >= 3; }));
  EXPECT_EQ(ids().back(), schedule.claim());

  // Sets the clock back by two days and restarts while a timer waits.
  auto waits = timer("t2", 10min);
  *waits.due_at += timer_clock.offset();
  commit_timer(waits);
  scheduler_->offer(*waits.due_at);
  // Removes the rows as the timers' Turns do.
  write("DELETE FROM schedules; DELETE FROM pending_calls WHERE id <> 't2'");
  jump(-48h);
  ASSERT_TRUE(comes_to_rest());
  ASSERT_TRUE(eventually([&] { return store_->first().timers().offset() == 24h; }));
  scheduler_->stop();
  TimerClock next_run(seen, steadily);
  next_run.set_offset(*store_->first().timers().offset());
  start({.timer_clock = &next_run});
  ASSERT_TRUE(comes_to_rest());
  advance(10min);
  ASSERT_TRUE(eventually([&] { return ids().size() >= 4; }));
  EXPECT_EQ(ids().back(), "t2");
  scheduler_->stop();  // before its clock is destroyed
}

// The session is erased after the timer is read and before it falls due.
TEST_F(SchedulerTest, TimerOfAnErasedSessionAppendsNothing) {
  put("t1", 10s);
  auto follow_up = model::FollowUp{};
  follow_up.id = "f1";
  follow_up.session = key("user-f1");
  follow_up.trace_id = model::new_trace_id();
  follow_up.due_at = clock_.now() + 10s;
  auto commit = turn(follow_up.session, {});
  commit.follow_ups.added.push_back(follow_up);
  commit_now(std::move(commit));
  scheduler_->offer(follow_up.due_at);
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = key("user-s1");
  schedule.text = "later";
  schedule.timezone = "UTC";
  schedule.due_at = clock_.now() + 10s;
  ASSERT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
  scheduler_->offer(schedule);
  ASSERT_TRUE(comes_to_rest());
  for (const char* user : {"user-t1", "user-f1", "user-s1"}) {
    ASSERT_TRUE(store_->first().user_data().erase({key(user).project_id, user}, {}));
  }
  put("probe", 11s);
  advance(11s);
  ASSERT_TRUE(sink_.wait_for(1));
  ASSERT_TRUE(comes_to_rest());
  EXPECT_EQ(fired(), (std::vector<std::string>{"probe"}));
}

TEST_F(SchedulerTest, QuestionsTimeIsAnEventOfItsOwnKind) {
  auto pending = timer("q1", 10s);
  pending.is_time_out = true;
  commit_timer(pending);
  scheduler_->offer(*pending.due_at);
  advance(10s);
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).type, model::EventType::time_out);
  EXPECT_EQ(sink_.events().at(0).claim, (model::Claim{model::Claim::Kind::timer, "q1"}));
}

TEST_F(SchedulerTest, PostponedTimerComesAtItsNewTimeOnly) {
  put("t1", 10s);
  put("t2", 1h);
  ASSERT_TRUE(comes_to_rest());
  const auto put_off = [&](const std::string& id, std::chrono::milliseconds in) {
    const auto moved = store_->first().timers().reschedule(id, clock_.now() + in);
    ASSERT_TRUE(moved) << moved.error().message;
    scheduler_->offer(moved->place.due);
  };
  put_off("t1", 30s);
  put_off("t2", 20s);
  put("probe", 10s);
  advance(10s);
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(fired(), (std::vector<std::string>{"probe"}));
  advance(10s);
  ASSERT_TRUE(sink_.wait_for(2));
  EXPECT_EQ(fired().back(), "t2");
  advance(10s);
  ASSERT_TRUE(sink_.wait_for(3));
  EXPECT_EQ(fired().back(), "t1");
}

TEST_F(SchedulerTest, ClockThatJumpsIsNoticedWithoutAWakeUp) {
  scheduler_->stop();
  start({.max_sleep = 20ms});
  put("t1", 1h);
  ASSERT_TRUE(comes_to_rest());
  clock_.advance(2h);
  EXPECT_TRUE(sink_.wait_for(1));
}

TEST_F(SchedulerTest, ThousandsThatAreDueAtOnceComeInOrderAndOnceEach) {
  scheduler_->stop();
  commit_timer(timer("t", -1h));
  write(
      "WITH RECURSIVE n(i) AS (SELECT 10001 UNION ALL SELECT i + 1 FROM n WHERE i < 13000)"
      " INSERT INTO pending_calls (id, session, trace_id, due_at, time_out)"
      " SELECT 't' || i, session, trace_id, due_at, 0 FROM pending_calls, n");
  start();
  ASSERT_TRUE(sink_.wait_for(3001));
  ASSERT_TRUE(comes_to_rest());
  const auto ids = fired();
  EXPECT_EQ(ids.size(), 3001U);
  EXPECT_TRUE(std::ranges::is_sorted(ids));
}

TEST_F(SchedulerTest, OneWhoseEventIsInTheLogComesAgainOnlyWithAnotherLog) {
  put("t1", 0ms);
  ASSERT_TRUE(sink_.wait_for(1));
  ASSERT_TRUE(comes_to_rest());
  scheduler_->stop();
  start();
  put("t2", 0ms);
  ASSERT_TRUE(sink_.wait_for(2));
  ASSERT_TRUE(comes_to_rest());
  EXPECT_EQ(fired(), (std::vector<std::string>{"t1", "t2"}));
  scheduler_->stop();
  ASSERT_TRUE(store_->first().timers().log_lost());
  start();
  EXPECT_TRUE(sink_.wait_for(4));
}

TEST_F(SchedulerTest, TimerWithoutANotificationIsFound) {
  scheduler_->stop();
  start({.look_interval = 1ms});
  commit_timer(timer("t1", 0ms));
  EXPECT_TRUE(sink_.wait_for(1));
}

// This daemon's wall clock is an hour ahead of the database's.
TEST_F(SchedulerTest, ScheduleOfAClusterGoesByTheServersClock) {
  scheduler_->stop();  // the schedule is due by the wall clock
  std::chrono::milliseconds steady{0};
  TimerClock server(clock_, [&] { return steady; });
  server.follow(clock_.now() - 1h, steady, 0ms);
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = key("ann");
  schedule.text = "later";
  schedule.timezone = "UTC";
  schedule.due_at = server.now() + 30min;
  ASSERT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
  auto probe = timer("probe", 0ms);
  probe.due_at = server.now();
  commit_timer(probe);
  start({.timer_clock = &server, .mine = [](std::string_view) { return true; }});
  ASSERT_TRUE(sink_.wait_for(1));
  ASSERT_TRUE(comes_to_rest());
  EXPECT_EQ(fired(), (std::vector<std::string>{"probe"}));
  EXPECT_EQ(server.schedule_now(), clock_.now() - 1h);
  server.follow(clock_.now() - 30min, steady, 0ms);
  scheduler_->wake();
  ASSERT_TRUE(sink_.wait_for(2));
  EXPECT_EQ(fired().back(), schedule.claim());
  scheduler_->stop();  // before its clock is destroyed
}

TEST_F(SchedulerTest, StopIsToleratedTwiceAndWithoutStart) {
  scheduler_->stop();
  scheduler_->stop();
  Scheduler unstarted({}, store_->first(), sink_.append(), clock_, metrics_);
  unstarted.stop();
  scheduler_->offer(clock_.now());
  EXPECT_TRUE(sink_.events().empty());
}

}  // namespace
}  // namespace conversed::daemon
