// Clients that wait for answers and outputs, and the threads that end their waits.
#include "api/live/waiters.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using std::chrono::steady_clock;

constexpr auto far = std::chrono::hours(1);

steady_clock::time_point in(std::chrono::nanoseconds time) {
  return steady_clock::now() + time;
}

// One outcome, to be waited for.
class Outcome {
 public:
  AnswerWaiters::Callback callback() {
    return [state = state_](Result<Answer> answer) {
      ++state->calls;
      state->promise.set_value(std::move(answer));
    };
  }
  Result<Answer> get() { return state_->future.get(); }
  [[nodiscard]] int calls() const { return state_->calls; }

 private:
  struct State {
    std::promise<Result<Answer>> promise;
    std::future<Result<Answer>> future = promise.get_future();
    std::atomic<int> calls{0};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

TEST(AnswerWaiters, ClaimedAndFinishedWaitGetsTheAnswer) {
  AnswerWaiters waiters;
  Outcome outcome;
  waiters.wait("in1", in(far), outcome.callback());
  EXPECT_TRUE(waiters.claim("in1"));
  waiters.finish("in1", {200, "{}"});
  EXPECT_EQ(outcome.get().value(), (Answer{200, "{}"}));
  EXPECT_EQ(waiters.size(), 0U);
}

TEST(AnswerWaiters, ClaimIsRefusedWhenNobodyWaits) {
  AnswerWaiters waiters;
  EXPECT_FALSE(waiters.claim("in1"));
  waiters.finish("in1", {});
  waiters.release("in1");
}

TEST(AnswerWaiters, LookingWhetherSomebodyWaitsClaimsNothing) {
  AnswerWaiters waiters;
  Outcome outcome;
  EXPECT_FALSE(waiters.awaited("in1"));
  waiters.wait("in1", in(std::chrono::milliseconds(1)), outcome.callback());
  (void)waiters.awaited("in1");
  EXPECT_EQ(outcome.get().error().code, Errc::timed_out);
  EXPECT_FALSE(waiters.awaited("in1"));
}

TEST(AnswerWaiters, AllWaitersOfAnInputGetItsAnswer) {
  AnswerWaiters waiters;
  Outcome first;
  Outcome second;
  Outcome other;
  waiters.wait("in1", in(far), first.callback());
  waiters.wait("in2", in(far), other.callback());
  EXPECT_TRUE(waiters.claim("in1"));
  waiters.wait("in1", in(far), second.callback());  // joins the claim
  waiters.finish("in1", {200, "x"});
  EXPECT_EQ(first.get()->body, "x");
  EXPECT_EQ(second.get()->body, "x");
  EXPECT_EQ(other.calls(), 0);
}

TEST(AnswerWaiters, PastItsDeadlineAWaitIsTimedOut) {
  AnswerWaiters waiters;
  Outcome outcome;
  waiters.wait("in1", in(std::chrono::milliseconds(1)), outcome.callback());
  EXPECT_EQ(outcome.get().error().code, Errc::timed_out);
  EXPECT_FALSE(waiters.claim("in1"));
}

TEST(AnswerWaiters, TheLastOneThatGivesUpSaysSo) {
  AnswerWaiters waiters;
  Outcome gone;
  std::promise<std::string> left;
  waiters.wait("in1", in(std::chrono::milliseconds(1)), gone.callback(),
               [&left](const std::string& input_id) { left.set_value(input_id); });
  EXPECT_EQ(left.get_future().get(), "in1");
  EXPECT_EQ(gone.get().error().code, Errc::timed_out);
  EXPECT_FALSE(waiters.awaited("in1"));
}

TEST(AnswerWaiters, WhoeverGivesUpBeforeOthersSaysNothing) {
  AnswerWaiters waiters;
  Outcome first;
  Outcome last;
  std::atomic<int> left{0};
  waiters.wait("in1", in(far), last.callback(), [&left](const std::string&) { ++left; });
  waiters.wait("in1", in(std::chrono::milliseconds(1)), first.callback(),
               [&left](const std::string&) { ++left; });
  EXPECT_EQ(first.get().error().code, Errc::timed_out);
  waiters.finish("in1", {200, "{}"});
  EXPECT_TRUE(last.get().has_value());
  waiters.stop();
  EXPECT_EQ(left, 0);
}

TEST(AnswerWaiters, AnEarlierDeadlineIsNotHeldUpByALaterOne) {
  AnswerWaiters waiters;
  Outcome late;
  Outcome early;
  waiters.wait("in1", in(far), late.callback());
  waiters.wait("in2", in(std::chrono::milliseconds(1)), early.callback());
  EXPECT_EQ(early.get().error().code, Errc::timed_out);
  EXPECT_EQ(late.calls(), 0);
}

TEST(AnswerWaiters, AClaimHoldsTheTimeOutBackUntilItIsReleased) {
  AnswerWaiters waiters(far);
  Outcome held;
  Outcome marker;
  // Claimed through a first waiter, so that the second one's deadline passes under the claim.
  Outcome first;
  waiters.wait("in1", in(far), first.callback());
  ASSERT_TRUE(waiters.claim("in1"));
  waiters.wait("in1", steady_clock::now(), held.callback());
  // Deadlines fire in their order: once the marker's has, the held one's was looked at.
  waiters.wait("in2", in(std::chrono::milliseconds(1)), marker.callback());
  EXPECT_EQ(marker.get().error().code, Errc::timed_out);
  EXPECT_EQ(held.calls(), 0);
  waiters.release("in1");
  EXPECT_EQ(held.get().error().code, Errc::timed_out);
  EXPECT_EQ(first.calls(), 0);
  EXPECT_TRUE(waiters.claim("in1"));
}

TEST(AnswerWaiters, AClaimHoldsTheTimeOutBackForABoundedTime) {
  AnswerWaiters waiters(std::chrono::milliseconds(1));
  Outcome outcome;
  waiters.wait("in1", in(far), [](auto) {});
  ASSERT_TRUE(waiters.claim("in1"));
  waiters.wait("in1", steady_clock::now(), outcome.callback());
  EXPECT_EQ(outcome.get().error().code, Errc::timed_out);
}

TEST(AnswerWaiters, ACommitKeepsThoseWaitingWhoseTimeIsNotUp) {
  AnswerWaiters waiters(far);
  Outcome late;
  Outcome early;
  EXPECT_FALSE(waiters.keep_waiting("in1"));
  waiters.wait("in1", in(far), early.callback());
  ASSERT_TRUE(waiters.claim("in1"));
  waiters.wait("in1", steady_clock::now(), late.callback());  // held back by the claim
  EXPECT_TRUE(waiters.keep_waiting("in1"));
  EXPECT_EQ(late.get().error().code, Errc::timed_out);
  EXPECT_TRUE(waiters.finish("in1", {200, "x"}));
  EXPECT_EQ(early.get()->body, "x");

  Outcome first;
  Outcome alone;
  const auto ticket = waiters.wait("in2", in(far), first.callback());
  ASSERT_TRUE(waiters.claim("in2"));
  waiters.wait("in2", steady_clock::now(), alone.callback());
  waiters.end(ticket, model::fail(Errc::unavailable, "gone"));
  EXPECT_FALSE(waiters.keep_waiting("in2"));
  EXPECT_EQ(alone.get().error().code, Errc::timed_out);
  EXPECT_FALSE(waiters.finish("in2", {200, "x"}));
}

TEST(AnswerWaiters, WhatIsOwedToAClaimThatTimedOutFindsNobody) {
  AnswerWaiters waiters(std::chrono::milliseconds(0));
  for (const int how : {0, 1, 2}) {
    Outcome first;
    Outcome timed_out;
    const auto ticket = waiters.wait("in1", in(far), first.callback());
    ASSERT_TRUE(waiters.claim("in1"));
    waiters.wait("in1", steady_clock::now(), timed_out.callback());
    EXPECT_EQ(timed_out.get().error().code, Errc::timed_out);
    ASSERT_TRUE(waiters.end(ticket, Answer{}));
    if (how == 0) {
      EXPECT_FALSE(waiters.finish("in1", {}));
    }
    if (how == 1) waiters.fail("in1", {Errc::internal, "failed"});
    if (how == 2) waiters.release("in1");
    EXPECT_EQ(timed_out.calls(), 1);
    EXPECT_EQ(waiters.size(), 0U);
  }
}

TEST(AnswerWaiters, AMovedWaitGetsTheAnswerOfItsNewInput) {
  AnswerWaiters waiters;
  Outcome outcome;
  const auto ticket = waiters.wait("in1", in(far), outcome.callback());
  EXPECT_TRUE(waiters.move(ticket, "in2"));
  EXPECT_FALSE(waiters.claim("in1"));
  waiters.finish("in2", {200, "two"});
  EXPECT_EQ(outcome.get()->body, "two");
  EXPECT_FALSE(waiters.move(ticket, "in3"));
}

TEST(AnswerWaiters, EndingOneWaitLeavesTheOthersOfItsInput) {
  AnswerWaiters waiters;
  Outcome one;
  Outcome other;
  const auto ticket = waiters.wait("in1", in(far), one.callback());
  waiters.wait("in1", in(far), other.callback());
  EXPECT_TRUE(waiters.end(ticket, model::fail(Errc::unavailable, "full")));
  EXPECT_FALSE(waiters.end(ticket, Answer{}));
  EXPECT_EQ(one.get().error().message, "full");
  waiters.fail("in1", {Errc::internal, "failed"});
  EXPECT_EQ(other.get().error().code, Errc::internal);
}

TEST(AnswerWaiters, StopEndsAllWaitsAndLaterOnes) {
  AnswerWaiters waiters;
  Outcome before;
  Outcome after;
  waiters.wait("in1", in(far), before.callback());
  waiters.stop();
  waiters.stop();
  EXPECT_EQ(before.get().error().code, Errc::unavailable);
  waiters.wait("in2", in(far), after.callback());
  EXPECT_EQ(after.get().error().code, Errc::unavailable);
}

TEST(AnswerWaiters, EveryWaitEndsOnceWhoeverRacesToEndIt) {
  const auto seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  std::cout << "seed " << seed << '\n';
  constexpr int rounds = 2000;
  AnswerWaiters waiters;
  std::vector<Outcome> outcomes(rounds);
  std::vector<std::atomic<AnswerWaiters::Ticket>> tickets(rounds);
  std::atomic<int> begun{0};

  std::jthread client([&] {
    std::mt19937 random(seed);
    for (int i = 0; i < rounds; ++i) {
      const auto deadline = in(std::chrono::microseconds(random() % 500));
      const auto name = "in" + std::to_string(i % 50);
      tickets[static_cast<std::size_t>(i)] =
          waiters.wait(name, deadline, outcomes[static_cast<std::size_t>(i)].callback());
      begun = i + 1;
    }
  });
  const auto work = [&](unsigned salt) {
    std::mt19937 random(seed + salt);
    while (begun < rounds) {
      const auto name = "in" + std::to_string(random() % 50);
      switch (random() % 4) {
        case 0:
          if (waiters.claim(name)) waiters.finish(name, {200, name});
          break;
        case 1:
          if (waiters.claim(name)) waiters.release(name);
          break;
        case 2:
          waiters.end(tickets[random() % rounds], Answer{200, "end"});
          break;
        default:
          waiters.move(tickets[random() % rounds], name);
      }
    }
  };
  {
    std::jthread one([&] { work(1); });
    std::jthread two([&] { work(2); });
  }
  client.join();
  waiters.stop();
  for (auto& outcome : outcomes) {
    (void)outcome.get();
    EXPECT_EQ(outcome.calls(), 1);
  }
  EXPECT_EQ(waiters.size(), 0U);
}

const model::SessionKey key{"p", "e", "u", "s"};
const model::SessionKey other_key{"p", "e", "u", "t"};

TEST(OutputWatch, NotifyEndsTheWatchesOfItsSessionOnly) {
  OutputWatch watch;
  std::promise<WatchEnd> one;
  std::promise<WatchEnd> two;
  std::atomic<int> others{0};
  watch.watch(key, in(far), [&](WatchEnd why) { one.set_value(why); });
  watch.watch(key, in(far), [&](WatchEnd why) { two.set_value(why); });
  watch.watch(other_key, in(far), [&](WatchEnd why) {
    EXPECT_EQ(why, WatchEnd::stopped);
    ++others;
  });
  watch.notify(key);
  watch.notify(key);
  EXPECT_EQ(one.get_future().get(), WatchEnd::notified);
  EXPECT_EQ(two.get_future().get(), WatchEnd::notified);
  EXPECT_EQ(others, 0);
  EXPECT_EQ(watch.size(), 1U);
  watch.stop();
  EXPECT_EQ(others, 1);
}

TEST(OutputWatch, HearsOfCommitsByShortNames) {
  OutputWatch watch;
  std::promise<WatchEnd> one;
  std::promise<WatchEnd> two;
  std::promise<WatchEnd> missed;
  watch.watch(key, in(far), [&](WatchEnd why) { one.set_value(why); });
  watch.watch(other_key, in(far), [&](WatchEnd why) { two.set_value(why); });
  watch.watch({"p", "e", "u", "v"}, in(far), [&](WatchEnd why) { missed.set_value(why); });
  watch.heard(store::short_name("another") + ' ' + store::short_name(key.encode()) + ' ' +
              store::short_name(other_key.encode()));
  EXPECT_EQ(one.get_future().get(), WatchEnd::notified);
  EXPECT_EQ(two.get_future().get(), WatchEnd::notified);
  EXPECT_EQ(watch.size(), 1U);
  watch.heard("");
  EXPECT_EQ(missed.get_future().get(), WatchEnd::notified);
}

TEST(OutputWatch, EndsAtItsDeadline) {
  OutputWatch watch;
  std::promise<WatchEnd> ended;
  watch.watch(key, in(std::chrono::milliseconds(1)), [&](WatchEnd why) { ended.set_value(why); });
  EXPECT_EQ(ended.get_future().get(), WatchEnd::deadline);
  EXPECT_EQ(watch.size(), 0U);
}

TEST(OutputWatch, ACancelledWatchNeverCalls) {
  OutputWatch watch;
  std::atomic<int> calls{0};
  const auto ticket = watch.watch(key, in(far), [&](WatchEnd) { ++calls; });
  EXPECT_TRUE(watch.cancel(ticket));
  EXPECT_FALSE(watch.cancel(ticket));
  watch.notify(key);
  watch.stop();
  EXPECT_EQ(calls, 0);
}

TEST(OutputWatch, NotifiedButNotYetCalledIsCalledOnceByStop) {
  OutputWatch watch;
  std::atomic<int> calls{0};
  std::promise<void> blocked;
  std::promise<void> go;
  auto may_go = go.get_future().share();
  // The watch's thread is held up, so the second one is notified and waits for its call.
  watch.watch(key, steady_clock::now(), [&](WatchEnd) {
    blocked.set_value();
    may_go.wait();
  });
  blocked.get_future().wait();
  watch.watch(other_key, in(far), [&](WatchEnd) { ++calls; });
  watch.notify(other_key);
  std::jthread stopper([&] { watch.stop(); });
  go.set_value();
  stopper.join();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace conversed::api
