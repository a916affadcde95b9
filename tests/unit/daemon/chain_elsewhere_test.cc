// Chains whose clients wait at another daemon; what that does with their replies is in
// answer_exchange_test.cc. What it announces is told to the store's news here.
#include "daemon/turns/answer_exchange.h"
#include "tests/unit/daemon/chain_world.h"

namespace conversed::daemon {
namespace {

using std::chrono::seconds;

// The Turns run at "b".
class ChainElsewhereTest : public ChainTest {
 protected:
  void SetUp() override {
    ChainTest::SetUp();
    key_ = session("hooked", "s");
    own_.emplace(
        AnswerExchangeSettings{.daemon = "b"}, *store_, waiters_, [this] { return clock_.now(); },
        AnswerExchangePorts{[](const auto&) {}, [](const auto&) {}});
    exchange_ = &*own_;
  }
  void TearDown() override {
    own_->stop();
    store_->committer().stop();
  }

  Event message(const std::string& text, const std::string& daemon = "a") {
    Event made = event(text, EventType::user_message);
    made.awaited_by = {daemon, clock_.now() + seconds(30)};
    return made;
  }
  Event keyed(const std::string& text, const std::string& daemon = "a") {
    Event made = keyed_message(text);
    made.awaited_by = {daemon, clock_.now() + seconds(30)};
    return made;
  }
  void hear(const store::AnswerNews& news) { store_->news().tell(store::to_news(news)); }

  // As the daemon `name` does whose client is there, or has left.
  void settle(const std::string& name, const std::string& input_id, bool awaited) {
    std::promise<void> done;
    store_->replies().settle(
        name, input_id, [awaited] { return awaited; },
        [&](const auto& settled) {
          EXPECT_TRUE(settled && settled->found == store::Replies::Settled::Found::reply);
          done.set_value();
        });
    done.get_future().wait();
  }

  // A message to "a" and, in the same chain, an event that is refused.
  Event run_before_an_error_text() {
    const Event asked = message("hi");
    const Event refused = event("bad");
    const std::vector records{record(asked), record(refused)};
    auto chain = build_chain(
        context(), {.key = key_, .records = records, .refused = {{refused.id, "refused"}}});
    EXPECT_TRUE(chain && commit(*chain) == Outcome::committed);
    return asked;
  }

  std::optional<AnswerExchange> own_;
};

TEST_F(ChainElsewhereTest, TheReplyHasTheAnswerAndTheOutputsAreHeld) {
  const Event asked = message("hi");
  const Chain chain = run({asked});
  EXPECT_EQ(chain.undecided, Texts{asked.id});
  EXPECT_TRUE(chain.answered.empty());
  ASSERT_EQ(chain.unit.replies.size(), 1U);
  const auto& reply = chain.unit.replies[0];
  EXPECT_EQ(reply.daemons, Texts{"a"});
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.body.find("one hi 1"), std::string::npos) << reply.body;
  EXPECT_EQ(for_webhook(), Texts{});
  settle("a", asked.id, true);
  EXPECT_EQ(for_webhook(), Texts{});
  EXPECT_TRUE(store_->sessions().to_drain(0, 10)->empty()) << "something is held still";
}

TEST_F(ChainElsewhereTest, IfTheClientHasLeftTheWebhookHasThem) {
  const Event asked = message("hi");
  run({asked});
  settle("a", asked.id, false);
  EXPECT_EQ(for_webhook(), (Texts{"one hi 1"}));
}

TEST_F(ChainElsewhereTest, AWaiterPastItsTimeIsNotWaitedFor) {
  const Event asked = message("hi");
  clock_.advance(seconds(60));
  const Chain chain = run({asked});
  EXPECT_TRUE(chain.undecided.empty());
  EXPECT_TRUE(chain.unit.replies.empty());
  EXPECT_EQ(for_webhook(), (Texts{"one hi 1"}));
}

TEST_F(ChainElsewhereTest, ItsOwnClientsNeedNoReply) {
  const Event asked = message("hi", "b");
  auto answer = wait_for(asked);
  const Chain chain = run({asked});
  EXPECT_TRUE(chain.unit.replies.empty());
  EXPECT_EQ(chain.answered.size(), 1U);
}

TEST_F(ChainElsewhereTest, BesideOthersItsOwnClientsHaveAReplyToo) {
  const Event asked = keyed("hi");
  auto answer = wait_for(asked);
  const Chain chain = run({asked});
  ASSERT_EQ(chain.unit.replies.size(), 1U);
  EXPECT_EQ(chain.unit.replies[0].daemons, (Texts{"a", "b"}));
  settle("a", asked.id, false);
  EXPECT_EQ(for_webhook(), Texts{});
  settle("b", asked.id, true);
  EXPECT_EQ(for_webhook(), Texts{});
  EXPECT_TRUE(store_->sessions().to_drain(0, 10)->empty());
}

TEST_F(ChainElsewhereTest, WhatComesBehindAnUndecidedAnswerWaits) {
  const Chain chain = run({message("hi"), event("next"), event("said", EventType::notify)});
  EXPECT_TRUE(chain.drain_more);
  EXPECT_EQ(texts(), (Texts{"one hi 1"}));
  EXPECT_EQ(stored().inbox_size, 2);
  run({});
  EXPECT_EQ(texts(), (Texts{"one hi 1", "one next 2", "said"}));
}

TEST_F(ChainElsewhereTest, AnAnswerThatWasLeftUndecidedGoesFirst) {
  const Event asked = message("hi");
  run({asked});
  // As at the daemon that has the session next.
  run({event("next")});
  EXPECT_EQ(for_webhook(), (Texts{"one hi 1", "one next 2"}));
  EXPECT_TRUE(store_->replies().addressed_to("a", 10)->empty()) << "it would be an answer as well";
}

TEST_F(ChainElsewhereTest, AnAnswerThatFindsNobodyLateDoesNotChangeTheOrder) {
  for (const bool gone_on : {false, true}) {
    const std::string name = gone_on ? "late" : "in time";
    key_ = session("hooked", name);
    const Event asked = message(name);
    run({asked});
    settle("a", asked.id, true);
    if (gone_on) run({event("next")});
    const Chain meanwhile = build({record(event("last"))});
    store_->replies().give_back(key_.encode(), asked.id);
    // Else it would not know what comes before it.
    EXPECT_EQ(commit(meanwhile), gone_on ? Outcome::committed : Outcome::conflict);
    EXPECT_EQ(std::ranges::count(for_webhook(), "one " + name + " 1"), gone_on ? 0 : 1);
    EXPECT_EQ(texts().at(0), "one " + name + " 1") << "it can be read";
  }
}

TEST_F(ChainElsewhereTest, AnErrorTextBehindAnUndecidedAnswerIsHeldWithIt) {
  const Event asked = run_before_an_error_text();
  EXPECT_EQ(for_webhook(), Texts{});
  settle("a", asked.id, false);
  EXPECT_EQ(for_webhook(), (Texts{"one hi 1", "Sorry."}));
}

TEST_F(ChainElsewhereTest, AnAnswerThatFindsNobodyIsNotSentBehindWhatWaitedForIt) {
  const Event asked = run_before_an_error_text();
  settle("a", asked.id, true);
  EXPECT_EQ(for_webhook(), (Texts{"Sorry."}));
  store_->replies().give_back(key_.encode(), asked.id);
  ASSERT_TRUE(store_->committer().write_and_wait([](auto&) { return model::Result<void>(); }));
  EXPECT_EQ(for_webhook(), (Texts{"Sorry."})) << "it may be on its way already";
}

TEST_F(ChainElsewhereTest, WithoutAWebhookNothingHangsOnTheReply) {
  key_ = session("plain", "p");
  const Chain chain = run({message("hi")});
  EXPECT_TRUE(chain.undecided.empty());
  ASSERT_EQ(chain.unit.replies.size(), 1U);
  EXPECT_FALSE(chain.unit.replies[0].else_webhook);
  EXPECT_TRUE(store_->sessions().to_drain(0, 10)->empty());
}

TEST_F(ChainElsewhereTest, AFailureIsToldElsewhere) {
  key_ = session("plain", "p");
  const Chain chain = run_refused({message("hi")});
  ASSERT_EQ(chain.unit.replies.size(), 1U);
  EXPECT_EQ(chain.unit.replies[0].status, 500);
  EXPECT_FALSE(chain.unit.replies[0].else_webhook);
}

TEST_F(ChainElsewhereTest, WhatIsHeldForAClientElsewhereIsItsAtTheEnd) {
  const Event asked = message("tell");
  const auto call = run({asked}).unit.calls_started.at(0).id;
  run({event("said", EventType::notify)});
  EXPECT_EQ(for_webhook(), Texts{});
  const Chain ended = run({result_of(call)});
  EXPECT_EQ(ended.undecided, Texts{asked.id});
  EXPECT_NE(ended.unit.replies.at(0).body.find("looking\\none tell 1"), std::string::npos);
  settle("a", asked.id, true);
  EXPECT_EQ(for_webhook(), (Texts{"said"}));
}

TEST_F(ChainElsewhereTest, WhatIsHeldGoesInOrderIfTheClientLeaves) {
  const Event asked = message("tell");
  const Chain chain = run({asked});
  EXPECT_TRUE(chain.held_until);
  run({event("said", EventType::notify)});
  EXPECT_EQ(for_webhook(), Texts{});
  ASSERT_TRUE(own_->start());
  hear({.kind = store::AnswerNews::Kind::left,
        .input_id = asked.id,
        .daemons = {"a"},
        .session = key_.encode(),
        .until = asked.awaited_by->until});
  EXPECT_TRUE(run({}).outputs_released);
  EXPECT_EQ(for_webhook(), (Texts{"looking", "said"}));
  EXPECT_TRUE(run({result_of(chain.unit.calls_started.at(0).id)}).undecided.empty());
  EXPECT_EQ(for_webhook(), (Texts{"looking", "said", "one tell 1"}));
}

TEST_F(ChainElsewhereTest, NothingIsHeldForADaemonThatSaysNothing) {
  run({message("tell")});
  EXPECT_EQ(for_webhook(), Texts{});
  EXPECT_TRUE(run({}).held_until) << "whoever has the session now, waits as well";
  clock_.advance(seconds(36));
  EXPECT_TRUE(run({}).outputs_released);
  EXPECT_EQ(for_webhook(), (Texts{"looking"}));
}

TEST_F(ChainElsewhereTest, ARepeatElsewhereJoinsTheExecution) {
  const Event asked = keyed("tell");
  const auto call = run({asked}).unit.calls_started.at(0).id;
  Event repeat = asked;
  repeat.awaited_by->daemon = "c";
  EXPECT_TRUE(run({repeat}).unit.outputs.empty());
  EXPECT_FALSE(run({repeat}).unit.after.execution->awaited_by.empty());
  ASSERT_EQ(stored().execution->awaited_by.size(), 2U);
  const Chain ended = run({result_of(call)});
  EXPECT_EQ(ended.unit.replies.at(0).daemons, (Texts{"a", "c"}));
  settle("a", asked.id, false);
  settle("c", asked.id, true);
  EXPECT_EQ(for_webhook(), Texts{});
  EXPECT_TRUE(store_->sessions().to_drain(0, 10)->empty());
}

}  // namespace
}  // namespace conversed::daemon
