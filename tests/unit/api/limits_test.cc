// Rates, the management pool, and the sizes of inboxes.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <set>
#include <string>

#include "api/live/blocking_pool.h"
#include "api/live/busy_sessions.h"
#include "api/live/rate_limiter.h"

namespace conversed::api {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const RateLimiter::TimePoint start{seconds(1000)};

TEST(RateLimiter, WithoutALimitNothingIsRefused) {
  RateLimiter limiter({.requests_per_second = 0, .burst = 1});
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(limiter.take("a", start));
}

TEST(RateLimiter, GrantsTheBurstAndThenTheRate) {
  RateLimiter limiter({.requests_per_second = 2, .burst = 3});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(limiter.take("a", start));
  EXPECT_EQ(limiter.take("a", start), milliseconds(500));
  EXPECT_EQ(limiter.take("a", start + milliseconds(400)), milliseconds(100));
  EXPECT_FALSE(limiter.take("a", start + milliseconds(500)));
  EXPECT_TRUE(limiter.take("a", start + milliseconds(500)));
}

TEST(RateLimiter, EachNameHasItsOwnBucket) {
  RateLimiter limiter({.requests_per_second = 1, .burst = 1});
  EXPECT_FALSE(limiter.take("a", start));
  EXPECT_FALSE(limiter.take("b", start));
  EXPECT_TRUE(limiter.take("a", start));
}

TEST(RateLimiter, APauseFillsTheBucketNoFurtherThanTheBurst) {
  RateLimiter limiter({.requests_per_second = 100, .burst = 2});
  EXPECT_FALSE(limiter.take("a", start));
  const auto later = start + seconds(60);
  EXPECT_FALSE(limiter.take("a", later));
  EXPECT_FALSE(limiter.take("a", later));
  EXPECT_TRUE(limiter.take("a", later));
}

TEST(RateLimiter, TimeThatStandsStillOrGoesBackGivesNothing) {
  RateLimiter limiter({.requests_per_second = 1, .burst = 1});
  EXPECT_FALSE(limiter.take("a", start));
  EXPECT_TRUE(limiter.take("a", start - seconds(5)));
  EXPECT_TRUE(limiter.take("a", start));
}

TEST(RateLimiter, ManyNamesAreLimitedEvenWhenNoneCanBeForgotten) {
  // Each shard has room for one name. While that name is busy, new names share a bucket.
  RateLimiter limiter({.requests_per_second = 1, .burst = 1, .max_names = 16});
  int granted = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!limiter.take("name" + std::to_string(i), start)) ++granted;
  }
  EXPECT_LE(granted, 32);
  EXPECT_GE(granted, 16);
  // An hour later those buckets are full, and new names replace them.
  EXPECT_FALSE(limiter.take("fresh", start + seconds(3600)));
}

TEST(BlockingPool, RefusesTasksBeyondItsQueue) {
  BlockingPool pool(1, 1);
  std::promise<void> begun;
  std::promise<void> go;
  ASSERT_TRUE(pool.post([&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  std::promise<void> second;
  EXPECT_TRUE(pool.post([&] { second.set_value(); }));
  EXPECT_FALSE(pool.post([] {}));
  go.set_value();
  second.get_future().wait();
}

TEST(BlockingPool, StopRunsWaitingTasksAndRefusesLaterOnes) {
  BlockingPool pool(2, 100);
  std::atomic<int> runs{0};
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(pool.post([&] { ++runs; }));
  pool.stop();
  pool.stop();
  EXPECT_EQ(runs, 50);
  EXPECT_FALSE(pool.post([] {}));
}

// A pool whose only thread waits until `run`, and the tasks that then ran, in order.
class HeldPool {
 public:
  explicit HeldPool(const BlockingPool::Limits& limits) : pool_(limits) {
    std::promise<void> begun;
    EXPECT_TRUE(pool_.post([&] {
      begun.set_value();
      go_.get_future().wait();
    }));
    begun.get_future().wait();
  }
  bool post(const std::string& name, BlockingPool::Line line = BlockingPool::Line::others) {
    return pool_.post(name, line, [this, name] { ran_ += name; });
  }
  std::string run() {
    go_.set_value();
    pool_.stop();
    return ran_;
  }

 private:
  std::promise<void> go_;
  std::string ran_;
  BlockingPool pool_;
};

TEST(BlockingPool, TurnsGoRoundTheNames) {
  HeldPool pool({.threads = 1, .waiting = 10});
  for (const char* name : {"a", "a", "a", "a", "b", "b", "c"}) EXPECT_TRUE(pool.post(name));
  EXPECT_EQ(pool.run(), "abcabaa");
}

TEST(BlockingPool, NoNameOvertakesOneThatWaits) {
  BlockingPool pool(1, 10);
  std::promise<void> begun;
  std::promise<void> go;
  std::promise<void> last;
  std::string ran;
  // Each task posts the next before its thread is free, as a client with many addresses can.
  std::function<void(char)> run_and_post_next = [&](char number) {
    ran += number;
    if (number == '5') return last.set_value();
    const char next = static_cast<char>(number + 1);
    EXPECT_TRUE(pool.post(std::string("m") + next, BlockingPool::Line::others,
                          [&, next] { run_and_post_next(next); }));
  };
  ASSERT_TRUE(pool.post("b", BlockingPool::Line::others, [&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  EXPECT_TRUE(pool.post("m1", BlockingPool::Line::others, [&] { run_and_post_next('1'); }));
  EXPECT_TRUE(pool.post("a", BlockingPool::Line::others, [&] { ran += 'a'; }));
  go.set_value();
  last.get_future().wait();
  pool.stop();
  EXPECT_EQ(ran.substr(0, 2), "1a");
}

TEST(BlockingPool, OneNameHoldsAFewPlacesOnly) {
  HeldPool pool({.threads = 1, .waiting = 3, .waiting_of_one = 2});
  EXPECT_TRUE(pool.post("a"));
  EXPECT_TRUE(pool.post("a"));
  EXPECT_FALSE(pool.post("a"));
  EXPECT_TRUE(pool.post("b"));
  EXPECT_FALSE(pool.post("c")) << "full";
  EXPECT_EQ(pool.run(), "aba");
}

TEST(BlockingPool, TheKnownDoNotWaitBehindAllOthers) {
  HeldPool pool({.threads = 1, .waiting = 4, .waiting_of_one = 4});
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_TRUE(pool.post(name));
  EXPECT_FALSE(pool.post("e")) << "full";
  EXPECT_TRUE(pool.post("K", BlockingPool::Line::known));
  EXPECT_LE(pool.run().find('K'), 1U);
}

TEST(RateLimiter, ACostAboveTheBalanceIsADebt) {
  RateLimiter limiter({.requests_per_second = 10, .burst = 2});
  EXPECT_FALSE(limiter.take("a", start, 12));
  EXPECT_EQ(limiter.take("a", start), milliseconds(1100));
  limiter.spent_elsewhere({"a", 1}, start);
  EXPECT_EQ(limiter.take("a", start), milliseconds(1100))
      << "a token spent elsewhere does not change the debt";
  EXPECT_FALSE(limiter.take("a", start + milliseconds(1100)));
}

TEST(RateLimiter, TokensSpentElsewhereAreSpentHere) {
  RateLimiter here({.requests_per_second = 1, .burst = 2});
  RateLimiter there({.requests_per_second = 1, .burst = 2});
  EXPECT_TRUE(there.take_spent(10).empty());
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(there.take("a", start));
  EXPECT_TRUE(there.take("a", start)) << "a refusal spends nothing";
  const auto spent = there.take_spent(10);
  ASSERT_EQ(spent.size(), 1U);
  EXPECT_EQ(spent[0].tokens, 2U);
  EXPECT_TRUE(there.take_spent(10).empty());
  here.spent_elsewhere(spent[0], start);
  EXPECT_EQ(here.take("a", start), milliseconds(1000));
  // A large report from elsewhere blocks for a bounded time.
  here.spent_elsewhere({"a", 1'000'000}, start);
  EXPECT_EQ(here.take("a", start), milliseconds(3000));
}

TEST(RateLimiter, SpendersAreReportedAFewAtATime) {
  RateLimiter limiter({.requests_per_second = 1, .burst = 2});
  EXPECT_TRUE(limiter.take_spent(2).empty());
  for (const auto* name : {"a", "b", "c"}) EXPECT_FALSE(limiter.take(name, start));
  EXPECT_EQ(limiter.take_spent(2).size(), 2U);
  EXPECT_EQ(limiter.take_spent(2).size(), 1U);
}

TEST(BusySessions, ReportsOfAnotherDaemonExpire) {
  BusySessions here;
  BusySessions there;
  const model::SessionKey key{"project", "endpoint", "user", "s"};
  there.set(key, 5);
  EXPECT_TRUE(there.full(6, 10).empty());
  const auto marks = there.full(5, 10);
  ASSERT_EQ(marks.size(), 1U);
  here.full_elsewhere("there", marks, start);
  EXPECT_TRUE(here.is_full(key.encode(), 5, start + BusySessions::believed_for));
  EXPECT_FALSE(here.is_full(key.encode(), 5, start + BusySessions::believed_for + seconds(1)));
  here.full_elsewhere("a third one", {}, start);
  EXPECT_TRUE(here.is_full(key.encode(), 5, start));
  here.full_elsewhere("there", {}, start);
  EXPECT_FALSE(here.is_full(key.encode(), 5, start));
}

TEST(BusySessions, KnowsTheSizesItWasToldAndForgetsEmptyOnes) {
  BusySessions busy;
  const model::SessionKey key{"p", "e", "u", "s"};
  EXPECT_EQ(busy.inbox_size(key.encode()), 0);
  busy.set(key, 7);
  busy.set({"p", "e", "u", "t"}, 1);
  EXPECT_EQ(busy.inbox_size(key.encode()), 7);
  busy.set(key, 0);
  EXPECT_EQ(busy.inbox_size(key.encode()), 0);
}

}  // namespace
}  // namespace conversed::api
