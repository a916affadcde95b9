#include "store/conversation/schedules.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/daemon/turn_batch_world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using model::Schedule;

class Schedules : public TurnBatchTest {
 protected:
  Schedule put(const std::string& cron, std::chrono::milliseconds in) {
    Schedule schedule;
    schedule.id = model::new_id();
    schedule.session = key_;
    schedule.text = "news";
    schedule.cron = cron;
    schedule.timezone = "UTC";
    schedule.due_at = clock_.now() + in;
    schedule.created_at = clock_.now();
    EXPECT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
    return schedule;
  }

  // The event as the Scheduler appends it now.
  Event due_event(const Schedule& schedule) {
    Event made = event(*schedule.text);
    made.claim = Claim{Claim::Kind::schedule, schedule.claim()};
    return made;
  }

  std::optional<Schedule> stored(const std::string& id) {
    auto found = store_->first().schedules().get(key_.project_id, id);
    return found ? std::optional(*found) : std::nullopt;
  }
};

TEST_F(Schedules, OneWithoutARuleComesOnce) {
  const auto schedule = put("", 10min);
  clock_.advance(10min);
  const TurnBatch batch = run({due_event(schedule)});
  EXPECT_EQ(texts(), (Texts{"one news 1"}));
  EXPECT_TRUE(batch.after.schedules.empty());
  EXPECT_FALSE(stored(schedule.id));
  EXPECT_FALSE(run({due_event(schedule)}).after.turns) << "appended twice, it has an effect once";
}

TEST_F(Schedules, TwiceInOneBatchItHasAnEffectOnce) {
  const auto schedule = put("", 0min);
  run({due_event(schedule), due_event(schedule)});
  EXPECT_EQ(texts(), (Texts{"one news 1"}));
}

TEST_F(Schedules, OneThatRecursGoesOnToItsNextTimeUnderAnotherClaim) {
  const auto schedule = put("*/5 * * * *", 0min);
  const TurnBatch batch = run({due_event(schedule)});
  ASSERT_EQ(batch.after.schedules.size(), 1U);
  const auto next = stored(schedule.id);
  ASSERT_TRUE(next);
  EXPECT_EQ(batch.after.schedules[0].due_at, next->due_at);
  EXPECT_EQ(batch.after.schedules[0].claim(), next->claim());
  EXPECT_NE(next->claim(), schedule.claim());
  EXPECT_GT(next->due_at, clock_.now());
  EXPECT_LE(next->due_at, clock_.now() + 5min);
  EXPECT_EQ(next->fired, 1);
  EXPECT_FALSE(run({due_event(schedule)}).after.turns) << "the earlier time had its effect already";
  clock_.set(next->due_at);
  run({due_event(*next)});
  EXPECT_EQ(texts(), (Texts{"one news 1", "one news 2"}));
  EXPECT_EQ(stored(schedule.id)->fired, 2);
}

// Otherwise the next time would be skipped or come early.
TEST_F(Schedules, NextTimeOfAClusterIsByTheServersClock) {
  TimerClock server(clock_, [] { return 0ms; });
  server.follow(clock_.now() - 90min, 0ms, 0ms);
  timer_clock_ = &server;
  const auto schedule = put("*/5 * * * *", -90min);
  run({due_event(schedule)});
  EXPECT_GT(stored(schedule.id)->due_at, server.now());
  EXPECT_LE(stored(schedule.id)->due_at, server.now() + 5min);
  timer_clock_ = nullptr;
}

TEST_F(Schedules, MissedTimesComeOnce) {
  const auto schedule = put("0 * * * *", 0min);
  clock_.advance(48h);
  run({due_event(schedule)});
  EXPECT_EQ(texts().size(), 1U);
  EXPECT_GT(stored(schedule.id)->due_at, clock_.now());
}

TEST_F(Schedules, OneThatWasCancelledOrPutOffHasNoEffectAtItsOldTime) {
  const auto cancelled = put("", 0min);
  ASSERT_TRUE(store_->first().schedules().cancel(key_.project_id, cancelled.id));
  EXPECT_FALSE(store_->first().schedules().cancel(key_.project_id, cancelled.id));
  const auto moved = put("", 0min);
  auto later = store_->first().schedules().reschedule(
      key_.project_id, moved.id, {.cron = "", .timezone = "UTC", .due_at = clock_.now() + 1h});
  ASSERT_TRUE(later);
  run({due_event(cancelled), due_event(moved)});
  EXPECT_TRUE(texts().empty());
  run({due_event(*later)});
  EXPECT_EQ(texts(), (Texts{"one news 1"}));
}

TEST_F(Schedules, ForABusySessionOneWaitsInTheInboxAndTheScheduleGoesOn) {
  run({event("call")});
  const auto schedule = put("0 * * * *", 0min);
  const TurnBatch batch = run({due_event(schedule)});
  EXPECT_EQ(batch.after.schedules.size(), 1U);
  EXPECT_EQ(stored(schedule.id)->fired, 1);
  EXPECT_EQ(store_->first().sessions().load(key_)->value().inbox_size, 1);
  run({result_of(store_->first().sessions().load(key_)->value().execution->pending_call_id)});
  EXPECT_EQ(texts(), (Texts{"one call 1", "one news 2"}));
}

TEST_F(Schedules, OneOfAnotherProjectIsNotFound) {
  const auto schedule = put("", 10min);
  EXPECT_FALSE(store_->first().schedules().get(std::string(24, 'z'), schedule.id));
  EXPECT_FALSE(store_->first().schedules().cancel(std::string(24, 'z'), schedule.id));
  EXPECT_TRUE(stored(schedule.id));
}

TEST_F(Schedules, TheyAreReadByDueTimeAndInTheOrderTheyWereMade) {
  const auto late = put("", 2h);
  const auto early = put("", 1h);
  for (const auto offset : {0min, 90min, -90min}) {
    const auto& timers = store_->first().timers();
    const auto now = clock_.now() + offset;
    EXPECT_EQ(timers.due(now, offset, 10)->next, early.due_at + offset);
    const auto by_due = timers.due(now + 2h, offset, 10);
    ASSERT_TRUE(by_due);
    ASSERT_EQ(by_due->timers.size(), 2U);
    EXPECT_EQ(by_due->timers[0].claim.id, early.claim());
    EXPECT_EQ(by_due->timers[0].at, early.due_at + offset);
    const auto behind = timers.due(now + 2h, offset, 10, by_due->timers.data());
    ASSERT_EQ(behind->timers.size(), 1U);
    EXPECT_EQ(behind->timers[0].claim.id, late.claim());
  }
  const auto page = store_->first().schedules().list(key_.project_id, 0, 1);
  ASSERT_EQ(page->size(), 1U);
  EXPECT_EQ((*page)[0].schedule.id, late.id);
  EXPECT_EQ(store_->first().schedules().list(key_.project_id, (*page)[0].n, 10)->at(0).schedule.id,
            early.id);
}

}  // namespace
}  // namespace conversed::daemon
