#include "daemon/scheduler.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "daemon/metrics.h"
#include "tests/unit/daemon/world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using model::Errc;

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

  void start(SchedulerSettings settings = {}) {
    scheduler_.reset();
    scheduler_ = std::make_unique<Scheduler>(settings, *store_, sink_.append(), clock_, metrics_);
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
    auto unit = turn(pending.session, {});
    unit.calls_started.push_back(pending);
    commit(std::move(unit));
  }
  void advance(std::chrono::milliseconds by) {
    clock_.advance(by);
    scheduler_->wake();
  }
  [[nodiscard]] bool waits_for(std::size_t timers) {
    return eventually([&] { return scheduler_->waiting() == timers; });
  }

  Metrics metrics_;
  EventSink sink_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, TimerIsAppendedWhenItsTimeHasComeAndNotBefore) {
  const auto pending = timer("t1", 10s);
  scheduler_->offer(pending);
  ASSERT_TRUE(waits_for(1));
  advance(9'999ms);
  scheduler_->offer(timer("probe", 0ms));
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).id, "probe-t");
  advance(1ms);
  ASSERT_TRUE(sink_.wait_for(2));
  const auto event = sink_.events().at(1);
  EXPECT_EQ(event.id, "t1-t");
  EXPECT_EQ(event.type, model::EventType::timer);
  EXPECT_EQ(event.session, pending.session);
  EXPECT_EQ(event.trace_id, pending.trace_id);
  EXPECT_EQ(event.accepted_at, clock_.now());
  EXPECT_EQ(event.claim, (model::Claim{model::Claim::Kind::timer, "t1"}));
  ASSERT_TRUE(waits_for(0));
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
    ASSERT_TRUE(store_->schedules().create(each, std::nullopt));
    scheduler_->offer(each);
  }
  ASSERT_TRUE(store_->schedules().cancel(cancelled.session.project_id, cancelled.id));
  ASSERT_TRUE(waits_for(2));
  advance(10s);
  ASSERT_TRUE(waits_for(0));
  ASSERT_EQ(sink_.events().size(), 1U);
  const auto event = sink_.events().at(0);
  EXPECT_EQ(event.id, schedule.claim() + "-t");
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
  ASSERT_TRUE(store_->schedules().create(schedule, std::nullopt));
  commit_timer(timer("t1", -3h));
  commit_timer(timer("t2", -1h));
  start();
  ASSERT_TRUE(sink_.wait_for(3));
  EXPECT_EQ(sink_.events().at(0).id, "t1-t");
  EXPECT_EQ(sink_.events().at(1).id, schedule.claim() + "-t");
  EXPECT_EQ(sink_.events().at(2).id, "t2-t");
}

TEST_F(SchedulerTest, EarlierTimerOvertakesALaterOne) {
  scheduler_->offer(timer("late", 60s));
  scheduler_->offer(timer("early", 1s));
  ASSERT_TRUE(waits_for(2));
  advance(1s);
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).id, "early-t");
}

TEST_F(SchedulerTest, TimersOfTheStoreAreFoundAtTheStart) {
  scheduler_->stop();
  commit_timer(timer("past", -1h));
  commit_timer(timer("soon", 5s));
  start();
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).id, "past-t");
  advance(5s);
  ASSERT_TRUE(sink_.wait_for(2));
  EXPECT_EQ(sink_.events().at(1).id, "soon-t");
}

TEST_F(SchedulerTest, FewInMemoryAreEnoughForManyInOrder) {
  scheduler_->stop();
  start({.max_timers = 5});
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 60; ++i) {
    const auto pending =
        timer("t" + std::to_string(i), std::chrono::milliseconds(1 + random() % 10'000));
    commit_timer(pending);
    scheduler_->offer(pending);
  }
  for (int step = 0; step < 100; ++step) advance(100ms);
  ASSERT_TRUE(sink_.wait_for(60));
  ASSERT_TRUE(waits_for(0));
  EXPECT_EQ(sink_.events().size(), 60U) << "each once";
}

TEST_F(SchedulerTest, FailedAppendIsTriedAgainUnderTheSameId) {
  sink_.fail(2, Errc::unavailable);
  scheduler_->offer(timer("t1", 0ms));
  ASSERT_TRUE(eventually([&] {
    advance(100ms);
    return sink_.events().size() == 1;
  }));
  EXPECT_EQ(sink_.tries(), 3);
  EXPECT_EQ(sink_.events().at(0).id, "t1-t");
  EXPECT_EQ(sink_.events().at(0).claim->id, "t1");
}

TEST_F(SchedulerTest, ClockThatJumpsIsNoticedWithoutAWakeUp) {
  scheduler_->stop();
  start({.max_sleep = 20ms});
  scheduler_->offer(timer("t1", 1h));
  ASSERT_TRUE(waits_for(1));
  clock_.advance(2h);
  EXPECT_TRUE(sink_.wait_for(1));
}

TEST_F(SchedulerTest, StopIsToleratedTwiceAndWithoutStart) {
  scheduler_->stop();
  scheduler_->stop();
  Scheduler unstarted({}, *store_, sink_.append(), clock_, metrics_);
  unstarted.stop();
  scheduler_->offer(timer("t1", 0ms));
  EXPECT_TRUE(sink_.events().empty());
}

}  // namespace
}  // namespace conversed::daemon
