// What an execution holds for a client that waits, and what is said to its session meanwhile: the
// webhook gets a session's outputs in the order of their numbers, whoever they are for.
#include "tests/unit/daemon/chain_world.h"

namespace conversed::daemon {
namespace {

class HeldOutputsTest : public ChainTest {
 protected:
  void SetUp() override {
    ChainTest::SetUp();
    key_ = session("hooked", "s");
  }

  // Begins an execution whose client waits; returns the id of the call that it made.
  std::string begin(const std::string& text) {
    message_ = event(text, EventType::user_message);
    answer_ = wait_for(message_);
    return run({message_}).unit.calls_started.at(0).id;
  }
  void give_up_waiting() {
    waiters_.fail(message_.id, {model::Errc::timed_out, "the client is gone"});
  }
  Event notify() { return event("said", EventType::notify); }

  Event message_;
  std::future<model::Result<api::Answer>> answer_;
};

TEST_F(HeldOutputsTest, WhatIsSaidPastTheFlowWaitsBehindAnAnswer) {
  const auto call = begin("tell");
  const Chain said = run({notify()});
  EXPECT_FALSE(said.outputs_released);
  EXPECT_EQ(for_webhook(), Texts{});
  EXPECT_EQ(texts(), (Texts{"looking", "said"}));
  const Chain ended = run({result_of(call)});
  ASSERT_EQ(ended.answered.size(), 1U);
  EXPECT_NE(ended.answered[0].answer->body.find("looking\\none tell 1"), std::string::npos);
  EXPECT_TRUE(ended.outputs_released);
  EXPECT_EQ(for_webhook(), (Texts{"said"}));
}

TEST_F(HeldOutputsTest, OfOneChainItWaitsAndGoesAsWell) {
  const auto call = begin("tell");
  const Chain ended = run({notify(), result_of(call), notify()});
  EXPECT_EQ(ended.answered.size(), 1U);
  EXPECT_TRUE(ended.outputs_released);
  // What comes behind an answer that may yet be the webhook's waits for the next chain.
  EXPECT_TRUE(ended.drain_more);
  EXPECT_EQ(for_webhook(), (Texts{"said"}));
  run({});
  EXPECT_EQ(for_webhook(), (Texts{"said", "said"}));
}

TEST_F(HeldOutputsTest, IfTheClientGoesAllOfItGoesToTheWebhookInOrder) {
  const auto call = begin("tell");
  run({notify()});
  give_up_waiting();
  const Chain ended = run({result_of(call)});
  EXPECT_TRUE(ended.answered.empty());
  EXPECT_TRUE(ended.outputs_released);
  EXPECT_EQ(for_webhook(), (Texts{"looking", "said", "one tell 1"}));
}

TEST_F(HeldOutputsTest, BehindAClientThatIsGoneNothingWaits) {
  const auto call = begin("tell");
  give_up_waiting();
  const Chain said = run({notify()});
  EXPECT_TRUE(said.outputs_released);
  EXPECT_EQ(for_webhook(), (Texts{"looking", "said"}));
  run({result_of(call)});
  EXPECT_EQ(for_webhook(), (Texts{"looking", "said", "one tell 1"}));
}

TEST_F(HeldOutputsTest, OnceTheClientIsGoneNoFurtherEventIsNeeded) {
  const auto call = begin("tell");
  run({notify()});
  give_up_waiting();
  const Chain touched = run({});
  EXPECT_TRUE(touched.outputs_released);
  EXPECT_EQ(for_webhook(), (Texts{"looking", "said"}));
  EXPECT_FALSE(run({}).changes);
  run({result_of(call)});
  EXPECT_EQ(for_webhook(), (Texts{"looking", "said", "one tell 1"}));
}

TEST_F(HeldOutputsTest, WhatIsHeldIsFoundWhenTheDaemonStarts) {
  begin("tell");
  const auto held = store_->sessions().to_drain(0, 10);
  ASSERT_EQ(held->size(), 1U);
  EXPECT_EQ(held->front().key, key_);
  give_up_waiting();
  run({});
  EXPECT_TRUE(store_->sessions().to_drain(0, 10)->empty());
}

TEST_F(HeldOutputsTest, HeldInTheSameChainItGoesWithTheRest) {
  message_ = event("tell", EventType::user_message);
  answer_ = wait_for(message_);
  const Chain chain = run({message_, notify()});
  EXPECT_EQ(for_webhook(), Texts{});
  give_up_waiting();
  run({notify()});
  EXPECT_EQ(for_webhook(), (Texts{"looking", "said", "said"}));
  EXPECT_EQ(chain.unit.calls_started.size(), 1U);
}

TEST_F(HeldOutputsTest, WhereNothingIsHeldNothingWaits) {
  const auto call = begin("call");
  run({notify()});
  EXPECT_EQ(for_webhook(), (Texts{"said"}));
  run({result_of(call)});
  EXPECT_EQ(for_webhook(), (Texts{"said"}));
}

TEST_F(HeldOutputsTest, AnExecutionThatGoesOnWithoutItsClientSendsWhatItHeldFirst) {
  const auto first = begin("ask");
  give_up_waiting();
  const Chain went_on = run({result_of(first)});
  EXPECT_TRUE(went_on.outputs_released);
  EXPECT_EQ(for_webhook(), (Texts{"looking", "found"}));
  run({result_of(went_on.unit.calls_started.at(0).id)});
  EXPECT_EQ(for_webhook(), (Texts{"looking", "found", "one ask 1"}));
}

TEST_F(HeldOutputsTest, TheErrorTextOfAnEventThatHadToWaitWaitsBehindAnAnswer) {
  const auto call = begin("tell");
  run_refused({event("a")});
  EXPECT_EQ(for_webhook(), Texts{});
  run({result_of(call)});
  EXPECT_EQ(for_webhook(), (Texts{"Sorry."}));
}

}  // namespace
}  // namespace conversed::daemon
