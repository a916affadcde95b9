// Clients that wait at another daemon than the one that runs their Turns: stores of their own on
// one schema in PostgreSQL. What Turns make of it is in chain_elsewhere_test.cc.
#include "daemon/turns/answer_exchange.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>

#include "api/live/waiters.h"
#include "tests/unit/store/fixture.h"

namespace conversed::daemon {
namespace {

using model::Errc;
using Texts = std::vector<std::string>;
using Answer = model::Result<api::Answer>;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::chrono::hours far{1};

// Sessions that an exchange asked for, by their ids. Thread-safe.
class Asked {
 public:
  std::function<void(const model::SessionKey&)> port() {
    return [this](const model::SessionKey& key) {
      const std::lock_guard lock(mutex_);
      sessions_.push_back(key.session_id);
      came_.notify_all();
    };
  }
  bool has(const std::string& session) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, seconds(30), [&] {
      return std::find(sessions_.begin(), sessions_.end(), session) != sessions_.end();
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  Texts sessions_;
};

// Until it listens a store hears nothing of what others announce.
void wait_until_it_listens(store::Store& store) {
  std::promise<void> heard;
  std::once_flag once;
  const auto listens = store.news().subscribe("here", [&](std::string_view payload) {
    if (!payload.empty()) std::call_once(once, [&] { heard.set_value(); });
  });
  auto future = heard.get_future();
  do {
    ASSERT_TRUE(store.committer().write_and_wait([](store::Writer& writer) {
      writer.announce("here 1");
      return model::Result<void>();
    }));
  } while (future.wait_for(milliseconds(10)) != std::future_status::ready);
}

// A daemon beside the one that runs the Turns.
struct Peer {
  // Lanes are patient by default: what is to be taken back at once says so.
  Peer(const std::string& name, const tests::StorePlace& place, const model::Clock& clock,
       milliseconds patience = far, store::CommitterSettings committing = {})
      : store(open(place, clock, committing)),
        exchange({.daemon = name, .patience = patience}, *store, waiters,
                 [&clock] { return clock.now(); }, {touched.port(), delivered.port()}) {
    store->committer().start();
    wait_until_it_listens(*store);
  }
  ~Peer() {
    exchange.stop();
    store->committer().stop();
  }

  static std::unique_ptr<store::Store> open(const tests::StorePlace& place,
                                            const model::Clock& clock,
                                            store::CommitterSettings committing) {
    auto settings = place.store();
    settings.committer = committing;
    auto opened = store::Store::open(settings, clock);
    EXPECT_TRUE(opened) << opened.error().message;
    return *std::move(opened);
  }

  std::future<Answer> wait_for(const std::string& input_id) {
    auto promise = std::make_shared<std::promise<Answer>>();
    waiters.wait(input_id, std::chrono::steady_clock::now() + far,
                 [promise](Answer answer) { promise->set_value(std::move(answer)); });
    return promise->get_future();
  }

  Asked touched;
  Asked delivered;
  std::unique_ptr<store::Store> store;
  api::AnswerWaiters waiters;
  AnswerExchange exchange;
};

template <typename T>
T soon(std::future<T>& future) {
  EXPECT_EQ(future.wait_for(seconds(30)), std::future_status::ready);
  return future.get();
}

// The Turns run at "b", in the session of "ann".
class AnswerExchangeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(place_.in_postgres()) << "run by tests/support/postgres.py";
    b_.emplace("b", place_, clock_);
  }

  // The Unit of a Turn that ends an input whose clients wait at these daemons.
  store::Unit ended(const std::string& input_id, const std::vector<std::string>& daemons) {
    auto unit = store::turn(key_, version_, version_ + 1, model::Delivery::held);
    ++version_;
    unit.outputs.front().input_id = input_id;
    unit.replies.push_back({.input_id = input_id,
                            .daemons = daemons,
                            .body = "the answer",
                            .else_webhook = true,
                            .expires_at = clock_.now() + seconds(15)});
    return unit;
  }
  store::Outcome commit(store::Unit unit) {
    return store::commit(b_->store->committer(), std::move(unit));
  }
  // As the worker does; the future is whether the lane has something to deliver as it goes on.
  std::future<bool> settle(const std::string& input_id, const std::vector<std::string>& daemons) {
    b_->exchange.expect(input_id);
    EXPECT_EQ(commit(ended(input_id, daemons)), store::Outcome::committed);
    auto promise = std::make_shared<std::promise<bool>>();
    b_->exchange.when_settled(input_id, [promise](bool pending) { promise->set_value(pending); });
    return promise->get_future();
  }
  using Seqs = std::vector<std::int64_t>;
  // What is to be sent to the webhook, in order.
  std::vector<std::int64_t> for_webhook() {
    std::vector<std::int64_t> sent;
    const auto due = b_->store->outbox().due(key_.endpoint_id, clock_.now(), 10, 100);
    EXPECT_TRUE(due);
    for (const auto& session : due->sessions) {
      for (const auto& output : session.outputs) sent.push_back(output.seq);
    }
    return sent;
  }
  void expect_that_nobody_is_there(Peer& peer) {
    ASSERT_TRUE(peer.exchange.start());
    ASSERT_TRUE(b_->exchange.start());
    auto pending = settle(input_, {"a"});
    EXPECT_TRUE(soon(pending));
    EXPECT_EQ(for_webhook(), Seqs{1});
  }
  bool holds_something() { return !b_->store->sessions().to_drain(0, 10)->empty(); }

  const tests::StorePlace place_;
  tests::ManualClock clock_;
  model::SessionKey key_ = store::key_of("ann");
  const std::string input_ = model::new_id();
  std::int64_t version_ = 0;
  std::optional<Peer> b_;
};

TEST_F(AnswerExchangeTest, TheClientElsewhereHasTheAnswerAndTheWebhookHasNot) {
  Peer a("a", place_, clock_);
  ASSERT_TRUE(a.exchange.start());
  ASSERT_TRUE(b_->exchange.start());
  auto answer = a.wait_for(input_);
  auto pending = settle(input_, {"a"});
  EXPECT_FALSE(soon(pending));
  const auto given = soon(answer);
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(*given, (api::Answer{200, "the answer"}));
  EXPECT_EQ(for_webhook(), Seqs{});
  EXPECT_FALSE(holds_something());
}

TEST_F(AnswerExchangeTest, IfTheClientHasGoneTheWebhookHasIt) {
  Peer a("a", place_, clock_);
  ASSERT_NO_FATAL_FAILURE(expect_that_nobody_is_there(a));
}

TEST_F(AnswerExchangeTest, WhatIsHeldBehindAnAnswerGoesOnceThatIsGiven) {
  Peer a("a", place_, clock_);
  ASSERT_TRUE(a.exchange.start());
  ASSERT_TRUE(b_->exchange.start());
  auto answer = a.wait_for(input_);
  EXPECT_EQ(commit(store::turn(key_, version_++, 1, model::Delivery::held)),
            store::Outcome::committed);
  auto pending = settle(input_, {"a"});
  EXPECT_TRUE(soon(pending));
  EXPECT_TRUE(soon(answer));
  EXPECT_EQ(for_webhook(), Seqs{1});
}

TEST_F(AnswerExchangeTest, WhatItsDaemonDoesNotTakeIsTakenBack) {
  Peer hasty("hasty", place_, clock_, milliseconds(1));
  ASSERT_TRUE(hasty.exchange.start());
  hasty.exchange.expect(input_);
  ASSERT_EQ(commit(ended(input_, {"a"})), store::Outcome::committed);
  std::promise<bool> settled;
  hasty.exchange.when_settled(input_, [&](bool pending) { settled.set_value(pending); });
  auto pending = settled.get_future();
  EXPECT_TRUE(soon(pending));
  EXPECT_EQ(for_webhook(), Seqs{1});
  // Whoever comes too late finds nothing, and its client is told nothing that is not so.
  Peer a("a", place_, clock_);
  auto answer = a.wait_for(input_);
  ASSERT_TRUE(a.exchange.start());
  a.store->news().tell("answers {\"kind\":\"given\",\"input\":\"" + input_ +
                       "\",\"daemons\":[\"a\"]}");
  ASSERT_TRUE(a.store->committer().write_and_wait(
      [](store::Writer&) -> model::Result<void> { return {}; }));
  EXPECT_EQ(answer.wait_for(seconds(0)), std::future_status::timeout);
  EXPECT_EQ(for_webhook(), Seqs{1});
}

TEST_F(AnswerExchangeTest, IfBothDaemonsDieTheWebhookHasIt) {
  ASSERT_EQ(commit(ended(input_, {"a"})), store::Outcome::committed);
  EXPECT_EQ(for_webhook(), Seqs{});
  clock_.advance(seconds(20));
  ASSERT_TRUE(b_->exchange.start());
  EXPECT_TRUE(b_->delivered.has("s")) << "whoever has the session is told";
  EXPECT_EQ(for_webhook(), Seqs{1});
}

TEST_F(AnswerExchangeTest, WhatWasLeftBeforeItsDaemonListenedIsTaken) {
  ASSERT_EQ(commit(ended(input_, {"a"})), store::Outcome::committed);
  Peer a("a", place_, clock_);
  auto answer = a.wait_for(input_);
  ASSERT_TRUE(a.exchange.start());
  EXPECT_TRUE(soon(answer));
  EXPECT_EQ(for_webhook(), Seqs{});
}

TEST_F(AnswerExchangeTest, WhatNobodyOwesIsDeliveredByWhoeverHasTheSession) {
  ASSERT_TRUE(b_->exchange.start());
  ASSERT_EQ(commit(ended(input_, {"a"})), store::Outcome::committed);
  Peer a("a", place_, clock_);
  ASSERT_TRUE(a.exchange.start());
  EXPECT_TRUE(b_->delivered.has("s"));
  EXPECT_EQ(for_webhook(), Seqs{1});
}

TEST_F(AnswerExchangeTest, OfSeveralDaemonsOneClientThatIsThereIsEnough) {
  Peer a("a", place_, clock_);
  Peer c("c", place_, clock_);
  ASSERT_TRUE(a.exchange.start());
  ASSERT_TRUE(c.exchange.start());
  ASSERT_TRUE(b_->exchange.start());
  for (Peer* there : {&a, &c}) {
    const std::string input = model::new_id();
    auto answer = there->wait_for(input);
    auto pending = settle(input, {"a", "c"});
    EXPECT_FALSE(soon(pending));
    EXPECT_EQ(soon(answer)->body, "the answer");
    EXPECT_EQ(for_webhook(), Seqs{});
  }
  auto pending = settle(input_, {"a", "c"});
  EXPECT_TRUE(soon(pending));
  EXPECT_EQ(for_webhook(), Seqs{3});
}

TEST_F(AnswerExchangeTest, AFailureIsToldElsewhere) {
  Peer a("a", place_, clock_);
  ASSERT_TRUE(a.exchange.start());
  auto answer = a.wait_for(input_);
  auto unit = ended(input_, {"a"});
  unit.outputs.clear();
  unit.replies.front().status = 500;
  unit.replies.front().else_webhook = false;
  ASSERT_EQ(commit(std::move(unit)), store::Outcome::committed);
  const auto told = soon(answer);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, Errc::internal);
}

TEST_F(AnswerExchangeTest, ARepeatThatNobodyKnowsOfHasTheKeptAnswer) {
  Peer c("c", place_, clock_);
  ASSERT_TRUE(c.exchange.start());
  auto answer = c.wait_for(input_);
  auto unit = store::turn(key_, 0, 1);
  unit.answers.push_back({input_, 200, "the kept one", clock_.now() + far});
  ASSERT_EQ(commit(std::move(unit)), store::Outcome::committed);
  EXPECT_EQ(soon(answer)->body, "the kept one");
}

TEST_F(AnswerExchangeTest, WhatAResetReleasesIsNoAnswer) {
  ASSERT_EQ(commit(ended(input_, {"a"})), store::Outcome::committed);
  ASSERT_TRUE(b_->store->sessions().reset(key_));
  EXPECT_EQ(for_webhook(), Seqs{1});
  EXPECT_TRUE(b_->store->replies().addressed_to("a", 10)->empty());
}

TEST_F(AnswerExchangeTest, WhatEndsAWaitEndsItElsewhere) {
  Peer a("a", place_, clock_);
  ASSERT_TRUE(a.exchange.start());
  auto answer = a.wait_for(input_);
  b_->exchange.ended(input_, "The conversation was reset before it answered.");
  const auto told = soon(answer);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message, "The conversation was reset before it answered.");
}

TEST_F(AnswerExchangeTest, WhoHasASessionHearsWhatOthersAskOfIt) {
  Peer a("a", place_, clock_);
  ASSERT_TRUE(b_->exchange.start());
  a.exchange.touch(store::key_of("touched"));
  a.exchange.deliver(key_);
  EXPECT_TRUE(b_->touched.has("s"));
  EXPECT_TRUE(b_->delivered.has("s"));
}

TEST_F(AnswerExchangeTest, AClientThatHasLeftIsNotWaitedFor) {
  Peer a("a", place_, clock_);
  const std::vector<model::Awaited> awaited{a.exchange.awaited_for(seconds(30))};
  ASSERT_TRUE(a.exchange.start());
  ASSERT_TRUE(b_->exchange.start());
  EXPECT_EQ(b_->exchange.elsewhere(input_, awaited), Texts{"a"});
  a.exchange.left(input_, key_, awaited.front().until);
  ASSERT_TRUE(b_->touched.has("s"));
  EXPECT_TRUE(b_->exchange.elsewhere(input_, awaited).empty());
  EXPECT_FALSE(b_->exchange.waited_until(input_, awaited));
}

// Both would have the answer else, the client and the webhook.
TEST_F(AnswerExchangeTest, ARepeatOfWhatHasTimedOutIsWaitedFor) {
  Peer a("a", place_, clock_);
  ASSERT_TRUE(a.exchange.start());
  ASSERT_TRUE(b_->exchange.start());
  const auto timed_out = a.exchange.awaited_for(seconds(30));
  clock_.advance(seconds(30));
  a.exchange.left(input_, key_, timed_out.until);
  ASSERT_TRUE(b_->touched.has("s"));
  const std::vector<model::Awaited> awaited{a.exchange.awaited_for(seconds(30))};
  EXPECT_EQ(b_->exchange.elsewhere(input_, awaited), Texts{"a"});
  EXPECT_TRUE(b_->exchange.waited_until(input_, awaited));
}

TEST_F(AnswerExchangeTest, AFailureThatIsKeptLeavesARepeatAlone) {
  Peer c("c", place_, clock_);
  ASSERT_TRUE(c.exchange.start());
  const std::string later = model::new_id();
  auto repeat = c.wait_for(input_);
  auto answer = c.wait_for(later);
  auto failed = store::turn(key_, 0, 1);
  failed.answers.push_back({input_, 500, "", clock_.now() + far});
  ASSERT_EQ(commit(std::move(failed)), store::Outcome::committed);
  auto answered = store::turn(key_, 1, 2);
  answered.answers.push_back({later, 200, "the kept one", clock_.now() + far});
  ASSERT_EQ(commit(std::move(answered)), store::Outcome::committed);
  EXPECT_TRUE(soon(answer));
  EXPECT_EQ(repeat.wait_for(seconds(0)), std::future_status::timeout);
}

// Whoever ran the Turn has died, and its successor has run on before anybody settles the reply.
TEST_F(AnswerExchangeTest, WhatAnotherReplyDecidesIsLeftToThat) {
  ASSERT_EQ(commit(ended(input_, {"a"})), store::Outcome::committed);
  ASSERT_EQ(commit(ended(model::new_id(), {"c"})), store::Outcome::committed);
  ASSERT_TRUE(b_->exchange.start());
  Peer a("a", place_, clock_);
  ASSERT_TRUE(a.exchange.start());
  ASSERT_TRUE(b_->delivered.has("s"));
  EXPECT_EQ(for_webhook(), Seqs{1});
  Peer c("c", place_, clock_);
  ASSERT_TRUE(c.exchange.start());
  clock_.advance(seconds(20));
  ASSERT_TRUE(b_->store->replies().take_back_expired(clock_.now(), 10));
  EXPECT_EQ(for_webhook(), (Seqs{1, 2}));
}

TEST_F(AnswerExchangeTest, WhatIsHeldForTheNextOnesClientStaysHeld) {
  ASSERT_EQ(commit(ended(input_, {"a"})), store::Outcome::committed);
  auto next = store::turn(key_, version_++, 2, model::Delivery::held);
  next.after.execution.emplace();
  next.after.execution->input_id = next.outputs.front().input_id;
  next.after.execution->source = model::EventType::user_message;
  next.after.execution->holds_outputs = true;
  ASSERT_EQ(commit(std::move(next)), store::Outcome::committed);
  ASSERT_TRUE(b_->exchange.start());
  Peer a("a", place_, clock_);
  ASSERT_TRUE(a.exchange.start());
  ASSERT_TRUE(b_->delivered.has("s"));
  EXPECT_EQ(for_webhook(), Seqs{1});
  EXPECT_TRUE(holds_something());
}

TEST_F(AnswerExchangeTest, AKeyThatIsTooLongToBeToldHoldsNothingUp) {
  key_.session_id = std::string(7'500, 's');
  EXPECT_LE(to_news(store::AnswerNews{.kind = store::AnswerNews::Kind::left,
                                      .input_id = input_,
                                      .session = key_.encode()})
                .size(),
            store::max_news_bytes);
  EXPECT_EQ(to_news(store::SessionNews{store::SessionNews::Kind::touch, key_.encode()}),
            store::sessions_topic);
  Peer a("a", place_, clock_);
  ASSERT_NO_FATAL_FAILURE(expect_that_nobody_is_there(a));
  ASSERT_EQ(commit(ended(model::new_id(), {"c"})), store::Outcome::committed);
  a.exchange.left(input_, key_, clock_.now());
  EXPECT_TRUE(b_->touched.has(key_.session_id));
}

TEST_F(AnswerExchangeTest, WhoeverMayHaveMissedATouchLooksAtWhatIsHeld) {
  ASSERT_TRUE(b_->exchange.start());
  ASSERT_EQ(commit(ended(input_, {"a"})), store::Outcome::committed);
  b_->store->news().tell(store::sessions_topic);
  EXPECT_TRUE(b_->touched.has("s"));
}

// The watch's thread tells all of the daemon's parts, and a stop waits for it.
TEST_F(AnswerExchangeTest, AStoreThatTakesNoMoreHoldsUpNeitherNewsNorTimes) {
  Peer a("a", place_, clock_, far, {.max_waiting = 1});
  ASSERT_TRUE(a.exchange.start());
  std::promise<void> begun;
  std::promise<void> release;
  const auto released = release.get_future().share();
  a.store->committer().write(
      [&](store::Writer&) -> model::Result<void> {
        begun.set_value();
        released.wait();
        return {};
      },
      [](const model::Result<void>&) {});
  begun.get_future().wait();
  auto answer = a.wait_for(input_);
  for (int i = 0; i < 3; ++i) {
    a.store->news().tell("answers {\"kind\":\"given\",\"input\":\"" + input_ +
                         "\",\"daemons\":[\"a\"]}");
  }
  a.exchange.touch_at(key_, clock_.now());
  EXPECT_TRUE(a.touched.has("s"));
  release.set_value();
  ASSERT_EQ(commit(ended(input_, {"a"})), store::Outcome::committed);
  EXPECT_TRUE(soon(answer));
}

TEST_F(AnswerExchangeTest, ALaneThatWaitsGoesOnAtTheStop) {
  ASSERT_TRUE(b_->exchange.start());
  auto pending = settle(input_, {"a"});
  b_->exchange.stop();
  EXPECT_FALSE(soon(pending));
}

TEST_F(AnswerExchangeTest, WhoeverPollsElsewhereHearsOfOutputs) {
  Peer a("a", place_, clock_);
  api::OutputWatch watch;
  std::promise<api::WatchEnd> woken;
  watch.watch(key_, std::chrono::steady_clock::now() + far,
              [&](api::WatchEnd why) { woken.set_value(why); });
  const auto heard =
      a.store->news().subscribe(std::string(store::outputs_topic), [&](std::string_view names) {
        if (!names.empty()) watch.heard(names);
      });
  ASSERT_EQ(commit(store::turn(key_, 0, 1)), store::Outcome::committed);
  auto end = woken.get_future();
  EXPECT_EQ(soon(end), api::WatchEnd::notified);
}

}  // namespace
}  // namespace conversed::daemon
