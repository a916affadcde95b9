// Clients that wait for answers and outputs, and the threads that end these waits.
#include "api/live/pending_replies.h"

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

// One wait, and the calls that it got.
class Client {
 public:
  [[nodiscard]] ReplyWait wait() const {
    return {.answered =
                [state = state_](Result<Answer> answer) {
                  ++state->answered;
                  state->promise.set_value(std::move(answer));
                },
            .overdue =
                [state = state_](Ticket ticket, Overdue) {
                  if (++state->overdue == 1) state->overdue_ticket.set_value(ticket);
                },
            .heard =
                [state = state_](Ticket) {
                  if (++state->heard == 1) state->first_heard.set_value();
                }};
  }
  Result<Answer> get() { return state_->promise.get_future().get(); }
  Ticket overdue() { return state_->overdue_ticket.get_future().get(); }
  void wait_until_heard() { state_->first_heard.get_future().wait(); }
  [[nodiscard]] int answered() const { return state_->answered; }
  [[nodiscard]] int overdue_times() const { return state_->overdue; }
  [[nodiscard]] int heard() const { return state_->heard; }

 private:
  struct State {
    std::promise<Result<Answer>> promise;
    std::promise<Ticket> overdue_ticket;
    std::promise<void> first_heard;
    std::atomic<int> answered{0};
    std::atomic<int> overdue{0};
    std::atomic<int> heard{0};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

TEST(PendingReplies, AFinishedWaitGetsTheAnswer) {
  PendingReplies pending_replies;
  Client client;
  pending_replies.wait("in1", in(far), client.wait());
  EXPECT_TRUE(pending_replies.awaited("in1"));
  pending_replies.finish("in1", Answer{200, "{}"});
  EXPECT_EQ(client.get().value(), (Answer{200, "{}"}));
  EXPECT_FALSE(pending_replies.awaited("in1"));
  EXPECT_EQ(pending_replies.size(), 0U);
  pending_replies.finish("in1", {});
}

TEST(PendingReplies, AllWaitersOfAnInputGetItsAnswer) {
  PendingReplies pending_replies;
  Client first;
  Client second;
  Client other;
  pending_replies.wait("in1", in(far), first.wait());
  pending_replies.wait("in2", in(far), other.wait());
  pending_replies.wait("in1", in(far), second.wait());
  pending_replies.finish("in1", Answer{200, "x"});
  EXPECT_EQ(first.get()->body, "x");
  EXPECT_EQ(second.get()->body, "x");
  EXPECT_EQ(other.answered(), 0);
}

TEST(PendingReplies, AtItsDeadlineAWaitIsOverdueAndGoesOnUntilItIsEnded) {
  PendingReplies pending_replies;
  Client client;
  pending_replies.wait("in1", in(std::chrono::milliseconds(1)), client.wait());
  const auto ticket = client.overdue();
  EXPECT_EQ(client.answered(), 0);
  EXPECT_TRUE(pending_replies.awaited("in1"));
  EXPECT_TRUE(pending_replies.end(ticket, Answer{202, "x"}));
  EXPECT_EQ(client.get()->status, 202);
  EXPECT_FALSE(pending_replies.end(ticket, Answer{}));
}

TEST(PendingReplies, AnEarlierDeadlineIsNotHeldUpByALaterOne) {
  PendingReplies pending_replies;
  Client late;
  Client early;
  pending_replies.wait("in1", in(far), late.wait());
  pending_replies.wait("in2", in(std::chrono::milliseconds(1)), early.wait());
  early.overdue();
  EXPECT_EQ(late.overdue_times(), 0);
}

TEST(PendingReplies, ALookThatTakesLongDelaysNoDeadline) {
  PendingReplies pending_replies;
  std::promise<void> database;
  Client slow;
  auto looks = slow.wait();
  looks.heard = [found = database.get_future().share()](Ticket) { found.wait(); };
  const auto looking = pending_replies.wait("in1", in(far), std::move(looks));
  pending_replies.look(looking);
  Client other;
  const auto ticket = pending_replies.wait("in2", in(std::chrono::milliseconds(1)), other.wait());
  EXPECT_EQ(other.overdue(), ticket);
  database.set_value();
}

TEST(PendingReplies, WaitingLooksAreMerged) {
  PendingReplies pending_replies;
  std::promise<void> database;
  Client client;
  std::atomic<int> looks{0};
  auto wait = client.wait();
  wait.heard = [&, found = database.get_future().share()](Ticket) {
    ++looks;
    found.wait();
  };
  const auto ticket = pending_replies.wait("in1", in(far), std::move(wait));
  pending_replies.look(ticket);
  while (looks == 0) std::this_thread::yield();
  for (int n = 0; n < 5; ++n) pending_replies.hear("in1");
  database.set_value();
  Client last;
  pending_replies.look(pending_replies.wait("in2", in(far), last.wait()));
  last.wait_until_heard();  // after all other looks
  EXPECT_EQ(looks, 2);
}

TEST(PendingReplies, ADeadlineCanComeEarlierAndNotLater) {
  PendingReplies pending_replies;
  Client hastened;
  const auto ticket = pending_replies.wait("in1", in(far), hastened.wait());
  pending_replies.hasten(ticket, in(far * 2));
  pending_replies.hasten(ticket, in(std::chrono::milliseconds(1)));
  EXPECT_EQ(hastened.overdue(), ticket);
  pending_replies.end(ticket, Answer{});
  pending_replies.hasten(ticket, steady_clock::now());
}

TEST(PendingReplies, WaitsHearNotificationsOfTheirInput) {
  PendingReplies pending_replies;
  Client client;
  Client other;
  pending_replies.wait("in1", in(far), client.wait());
  pending_replies.wait("in3", in(far), other.wait());
  pending_replies.hear("in0 in1 in2");
  client.wait_until_heard();
  EXPECT_EQ(other.heard(), 0);
  pending_replies.hear("");  // some notification may be lost
  other.wait_until_heard();
}

TEST(PendingReplies, AMovedWaitGetsTheAnswerOfItsNewInput) {
  PendingReplies pending_replies;
  Client client;
  const auto ticket = pending_replies.wait("in1", in(far), client.wait());
  EXPECT_TRUE(pending_replies.move(ticket, "in2"));
  EXPECT_FALSE(pending_replies.awaited("in1"));
  pending_replies.finish("in2", Answer{200, "two"});
  EXPECT_EQ(client.get()->body, "two");
  EXPECT_FALSE(pending_replies.move(ticket, "in3"));
}

TEST(PendingReplies, EndingOneWaitLeavesTheOthersOfItsInput) {
  PendingReplies pending_replies;
  Client one;
  Client other;
  const auto ticket = pending_replies.wait("in1", in(far), one.wait());
  pending_replies.wait("in1", in(far), other.wait());
  EXPECT_TRUE(pending_replies.end(ticket, model::fail(Errc::unavailable, "full")));
  EXPECT_FALSE(pending_replies.end(ticket, Answer{}));
  EXPECT_EQ(one.get().error().message, "full");
  pending_replies.finish("in1", model::fail(model::Error{Errc::internal, "failed"}));
  EXPECT_EQ(other.get().error().code, Errc::internal);
}

TEST(PendingReplies, CutOffMakesAllOverdueOnceAndTakesNoMore) {
  PendingReplies pending_replies;
  Client before;
  Client after;
  const auto ticket = pending_replies.wait("in1", in(far), before.wait());
  pending_replies.cut_off();
  pending_replies.cut_off();
  EXPECT_EQ(before.overdue(), ticket);
  EXPECT_EQ(before.overdue_times(), 1);
  pending_replies.wait("in2", in(far), after.wait());
  EXPECT_EQ(after.get().error().code, Errc::unavailable);
  EXPECT_TRUE(pending_replies.end(ticket, Answer{202, "x"}));
  EXPECT_EQ(before.get()->status, 202);
}

TEST(PendingReplies, StopEndsAllWaitsAndLaterOnes) {
  PendingReplies pending_replies;
  Client before;
  Client after;
  pending_replies.wait("in1", in(far), before.wait());
  pending_replies.stop();
  pending_replies.stop();
  EXPECT_EQ(before.get().error().code, Errc::unavailable);
  pending_replies.wait("in2", in(far), after.wait());
  EXPECT_EQ(after.get().error().code, Errc::unavailable);
}

TEST(PendingReplies, EveryWaitEndsOnceWhenEndsRace) {
  const auto seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  std::cout << "seed " << seed << '\n';
  constexpr int rounds = 2000;
  PendingReplies pending_replies;
  std::vector<Client> clients(rounds);
  std::vector<std::atomic<Ticket>> tickets(rounds);
  std::atomic<int> begun{0};

  std::jthread client([&] {
    std::mt19937 random(seed);
    for (int i = 0; i < rounds; ++i) {
      const auto deadline = in(std::chrono::microseconds(random() % 500));
      const auto name = "in" + std::to_string(i % 50);
      tickets[static_cast<std::size_t>(i)] =
          pending_replies.wait(name, deadline, clients[static_cast<std::size_t>(i)].wait());
      begun = i + 1;
    }
  });
  const auto work = [&](unsigned salt) {
    std::mt19937 random(seed + salt);
    while (begun < rounds) {
      const auto name = "in" + std::to_string(random() % 50);
      switch (random() % 4) {
        case 0:
          pending_replies.finish(name, Answer{200, name});
          break;
        case 1:
          pending_replies.hear(name);
          break;
        case 2:
          pending_replies.end(tickets[random() % rounds], Answer{200, "end"});
          break;
        default:
          pending_replies.move(tickets[random() % rounds], name);
      }
    }
  };
  {
    std::jthread one([&] { work(1); });
    std::jthread two([&] { work(2); });
  }
  client.join();
  pending_replies.stop();
  for (auto& each : clients) {
    (void)each.get();
    EXPECT_EQ(each.answered(), 1);
    EXPECT_LE(each.overdue_times(), 1);
  }
  EXPECT_EQ(pending_replies.size(), 0U);
}

const std::string key = outputs_name({"p", "e", "u", "s"});
const std::string other_key = outputs_name({"p", "e", "u", "t"});

TEST(KeyWatch, NotifyEndsTheWatchesOfItsNameOnly) {
  KeyWatch watch;
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

TEST(KeyWatch, HearsOfCommitsByShortNames) {
  KeyWatch watch;
  std::promise<WatchEnd> one;
  std::promise<WatchEnd> two;
  std::promise<WatchEnd> missed;
  watch.watch(key, in(far), [&](WatchEnd why) { one.set_value(why); });
  watch.watch(other_key, in(far), [&](WatchEnd why) { two.set_value(why); });
  watch.watch("missed", in(far), [&](WatchEnd why) { missed.set_value(why); });
  watch.notify(outputs_name({"p", "e", "u", "v"}) + ' ' + key + ' ' + other_key);
  EXPECT_EQ(one.get_future().get(), WatchEnd::notified);
  EXPECT_EQ(two.get_future().get(), WatchEnd::notified);
  EXPECT_EQ(watch.size(), 1U);
  watch.notify("");
  EXPECT_EQ(missed.get_future().get(), WatchEnd::notified);
}

TEST(KeyWatch, EndsAtItsDeadline) {
  KeyWatch watch;
  std::promise<WatchEnd> ended;
  watch.watch(key, in(std::chrono::milliseconds(1)), [&](WatchEnd why) { ended.set_value(why); });
  EXPECT_EQ(ended.get_future().get(), WatchEnd::deadline);
  EXPECT_EQ(watch.size(), 0U);
}

TEST(KeyWatch, ACancelledWatchNeverCalls) {
  KeyWatch watch;
  std::atomic<int> calls{0};
  const auto ticket = watch.watch(key, in(far), [&](WatchEnd) { ++calls; });
  EXPECT_TRUE(watch.cancel(ticket));
  EXPECT_FALSE(watch.cancel(ticket));
  watch.notify(key);
  watch.stop();
  EXPECT_EQ(calls, 0);
}

TEST(KeyWatch, NotifiedButNotYetCalledIsCalledOnceByStop) {
  KeyWatch watch;
  std::atomic<int> calls{0};
  std::promise<void> blocked;
  std::promise<void> go;
  auto may_go = go.get_future().share();
  // Holds the watch's thread up, so that the second watch is notified and waits for its call.
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
