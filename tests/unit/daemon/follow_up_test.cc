#include <gtest/gtest.h>

#include <chrono>

#include "store/shards/backlog.h"
#include "tests/unit/daemon/follow_up_world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;

class FollowUps : public FollowUpWorld {};

TEST_F(FollowUps, SilenceIsFollowedUpOnceAndTheConversationGoesOnWhereItWaited) {
  run({message("ask")});
  ASSERT_EQ(waiting().size(), 1U);
  EXPECT_EQ(waiting().at(0).due_at, clock_.now() + 20min);
  const Event fired = due_event(waiting().at(0));
  pass(20min);
  EXPECT_EQ(texts(), (Texts{"Your name?", "Still there?"}));
  EXPECT_TRUE(waiting().empty());
  EXPECT_FALSE(run({fired}).after.turns) << "appended twice, it has an effect once";
  run({message("Ann")});
  EXPECT_EQ(texts().back(), "Hello Ann");
}

TEST_F(FollowUps, MessageCancelsAFollowUpThatIsDueAtTheSameTime) {
  run({message("hi")});
  const auto first = waiting().at(0);
  clock_.advance(20min);
  // The due event is in the log before the Scheduler knows the message's effects.
  run({message("I am here"), due_event(first)});
  EXPECT_EQ(texts(), (Texts{"echo hi", "echo I am here"}));
  ASSERT_EQ(waiting().size(), 1U);
  EXPECT_EQ(waiting().at(0).due_at, clock_.now() + 20min)
      << "the new silence begins with the message";
  run({due_event(first)});
  EXPECT_EQ(texts().size(), 2U);
}

TEST_F(FollowUps, InjectNeitherArmsNorCancels) {
  run({event("news")});
  EXPECT_TRUE(waiting().empty());
  run({message("hi")});
  const auto before = waiting().at(0);
  run({event("more news")});
  ASSERT_EQ(waiting().size(), 1U);
  EXPECT_EQ(waiting().at(0).id, before.id);
}

TEST_F(FollowUps, OneThatWaitsInTheInboxIsWithdrawnByAMessage) {
  run({message("hi")});
  const auto pending = waiting().at(0);
  run({event("call")});
  ASSERT_TRUE(stored().busy());
  clock_.advance(20min);
  run({due_event(pending)});
  EXPECT_EQ(stored().inbox_size, 1);
  EXPECT_EQ(waiting().size(), 1U) << "the claim is consumed when the follow-up runs";
  run({message("here")});
  EXPECT_TRUE(waiting().empty());
  run({result_of(stored().execution->pending_call_id)});
  EXPECT_EQ(texts(), (Texts{"echo hi", "echo call", "echo here"}));
  EXPECT_EQ(stored().inbox_size, 0);
}

TEST_F(FollowUps, OneThatAMessageOfItsBatchCancelsHasAReceiptWithAnEnd) {
  run({message("hi")});
  const auto pending = waiting().at(0);
  const auto call = event("call");
  run({call});
  clock_.advance(20min);
  const auto cancelled = due_event(pending);
  const auto said = message("here");
  run({cancelled, said, result_of(stored().execution->pending_call_id)});
  EXPECT_EQ(texts(), (Texts{"echo hi", "echo call", "echo here"}));
  const auto receipt = store_->first().receipts().get(cancelled.id);
  ASSERT_TRUE(receipt) << receipt.error().message;
  EXPECT_EQ(receipt->rows.back().body["ended"], "it was cancelled while it waited");
  EXPECT_EQ(receipt->previous, call.id);
  EXPECT_EQ(store_->first().receipts().get(said.id)->previous, cancelled.id);
  const auto erased = store_->first().user_data().erase(
      {key_.project_id, key_.user_id}, {.finished = [](const model::Position&) { return true; },
                                        .ended = [](const auto&, const auto&) {}});
  ASSERT_TRUE(erased) << erased.error().message;
  EXPECT_EQ(erased->receipts, 4) << "the chain holds";
  EXPECT_FALSE(store_->first().receipts().get(call.id));
}

TEST_F(FollowUps, ReceiptOfAMessageHasTheFollowUpsPlannedAfterIt) {
  run({message("hi"), message("again")});
  const auto planned = waiting();
  ASSERT_EQ(planned.size(), 1U);
  const auto last = store_->first().receipts().get(stored().last_receipt);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->rows.front().body["followUps"],
            nlohmann::json{model::to_unix_ms(planned.front().due_at)});
}

TEST_F(FollowUps, OneAheadOfTheAnswerInTheLogComesInBatchesOfAnySize) {
  for (const bool in_one_batch : {false, true}) {
    run({message("hi")});
    const auto pending = waiting().at(0);
    run({event("call")});
    clock_.advance(20min);
    const std::vector<Event> events{
        due_event(pending), result_of(stored().execution->pending_call_id), message("here")};
    if (in_one_batch) {
      run(events);
    } else {
      for (const auto& one : events) run({one});
    }
    EXPECT_EQ(stored().inbox_size, 0);
  }
  const Texts once{"echo hi", "echo call", "Still there?", "echo here"};
  EXPECT_EQ(texts(),
            (Texts{once[0], once[1], once[2], once[3], once[0], once[1], once[2], once[3]}));
}

TEST_F(FollowUps, JourneyLimitsFollowUpsOfASession) {
  for (int i = 0; i < 4; ++i) {
    run({message("hi")});
    pass(20min);
  }
  EXPECT_EQ(std::ranges::count(texts(), "Still there?"), 2);
}

TEST_F(FollowUps, OneThatComesTooLateIsDropped) {
  run({message("hi")});
  const TurnBatch batch = pass(4h);
  EXPECT_EQ(batch.after.follow_ups_dropped, 1U);
  EXPECT_TRUE(waiting().empty());
  EXPECT_EQ(texts(), (Texts{"echo hi"}));
}

TEST_F(FollowUps, QuietHoursFollowTheirTimeZone) {
  set_up(
      R"({after: 20m, flow: Nudge, quietHours: {from: "22:00", to: "07:00", timezone: Europe/Berlin}})");
  // 2026-03-28, 21:50 in Berlin. The clocks go forward in this night.
  clock_.set(model::from_unix_ms(1'774'731'000'000));
  run({message("hi")});
  ASSERT_EQ(waiting().size(), 1U);
  const auto morning = model::from_unix_ms(1'774'760'400'000);  // 07:00 in Berlin, 05:00 UTC
  EXPECT_EQ(waiting().at(0).due_at, morning);
  clock_.advance(30min);
  // A clock that jumped makes the event come within quiet hours. The follow-up waits again.
  run({due_event(waiting().at(0))});
  ASSERT_EQ(waiting().size(), 1U);
  EXPECT_EQ(waiting().at(0).due_at, morning);
  EXPECT_EQ(texts(), (Texts{"echo hi"}));
  pass(morning - clock_.now());
  EXPECT_EQ(texts(), (Texts{"echo hi", "Still there?"}));
}

TEST_F(FollowUps, NodesAskForOneInPlaceOfTheJourneyAndCancelAll) {
  run({message("later")});
  ASSERT_EQ(waiting().size(), 1U);
  EXPECT_EQ(waiting().at(0).due_at, clock_.now() + 1h);
  run({event("bye")});
  EXPECT_TRUE(waiting().empty());
  run({message("bye")});
  EXPECT_TRUE(waiting().empty()) << "the silence after the cancel is not followed up";
  run({event("later")});
  pass(1h);
  EXPECT_EQ(texts().back(), "As you wished, later");
}

TEST_F(FollowUps, AnswerWithdrawsAFollowUpWhoseDeliveryHasNotBegun) {
  key_ = session("hooked", "s");
  for (const bool begun : {false, true}) {
    run({message("hi")});
    const TurnBatch batch = pass(20min);
    ASSERT_EQ(batch.commit.outputs.size(), 1U);
    EXPECT_TRUE(batch.commit.outputs.at(0).withdrawable);
    const auto& output = batch.commit.outputs.at(0);
    std::promise<model::Result<void>> asked;
    if (begun) {
      store_->first().outbox().begin_delivery(key_, output,
                                              [&](auto done) { asked.set_value(done); });
      EXPECT_TRUE(asked.get_future().get());
    }
    run({message("here")});
    const auto said = texts();
    EXPECT_EQ(std::ranges::count(said, "Still there?"), begun ? 1 : 0);
    std::promise<model::Result<void>> late;
    store_->first().outbox().begin_delivery(key_, output, [&](auto done) { late.set_value(done); });
    EXPECT_EQ(late.get_future().get().has_value(), begun);
  }
}

TEST_F(FollowUps, AQuestionOfTheFollowUpFlowGetsTheAnswer) {
  run({message("ask")});
  write("UPDATE sessions SET context = '{\"survey\": true}'");
  pass(20min);
  run({message("fine")});
  EXPECT_EQ(texts().back(), "Noted: fine");
  run({message("Ann")});
  EXPECT_EQ(texts().back(), "Hello Ann") << "the Endpoint's Flow waited meanwhile";
}

TEST_F(FollowUps, AQuestionOfAFlowThatTheFollowUpFlowEntersGetsTheAnswer) {
  run({message("ask")});
  write("UPDATE sessions SET context = '{\"deep\": true, \"survey\": true}'");
  pass(20min);
  EXPECT_EQ(texts().back(), "How deep?");
  run({message("very")});
  EXPECT_EQ(texts().back(), "How was it?") << "the Flow that entered it goes on";
  run({message("fine")});
  EXPECT_EQ(texts().back(), "Noted: fine");
  run({message("Ann")});
  EXPECT_EQ(texts().back(), "Hello Ann") << "the Endpoint's Flow waited meanwhile";
}

TEST_F(FollowUps, AnInjectGoesToTheFlowThatTakesIt) {
  run({message("pay")});
  write("UPDATE sessions SET context = '{\"survey\": true}'");
  pass(20min);
  EXPECT_EQ(texts().back(), "How was it?");
  Event packed = event("");
  packed.data = {{"event", "packed"}};
  run({packed});
  EXPECT_EQ(texts().back(), "How was it?") << "the follow-up's Flow asks again";
  EXPECT_EQ(texts().size(), 3U);
  Event paid = event("");
  paid.data = {{"event", "paid"}};
  run({paid});
  EXPECT_EQ(texts().back(), "Paid.");
  run({message("hi")});
  EXPECT_EQ(texts().back(), "echo hi") << "no question waits";
}

TEST_F(FollowUps, OneThatIsNamedLikeTheEndpointsFlowLeavesItsQuestionAlone) {
  run({message("own")});
  pass(1h);
  EXPECT_EQ(texts(), (Texts{"Which?", "Your name?"}));
  run({message("Ann")});
  EXPECT_EQ(texts().back(), "Hello Ann") << "the follow-up's question gets the message";
  run({message("the blue one")});
  EXPECT_EQ(texts().back(), "Got the blue one") << "the Endpoint's Flow waited meanwhile";
}

TEST_F(FollowUps, AnAnswerEndsAFollowUpFlowThatIsStillAtACall) {
  for (const bool in_one_batch : {false, true}) {
    run({message("slow")});
    const auto due = waiting().at(0);
    clock_.advance(20min);
    TurnBatch batch;
    const Event begun = due_event(due);
    const std::string call = begun.id + "-c1";
    if (in_one_batch) {
      batch = run({begun, message("here")});
      EXPECT_TRUE(batch.commit.calls.started.empty()) << "the call is not made";
    } else {
      run({begun});
      ASSERT_TRUE(stored().busy());
      EXPECT_EQ(stored().execution->pending_call_id, call);
      run({message("here")});
    }
    EXPECT_FALSE(stored().busy());
    EXPECT_EQ(stored().inbox_size, 0);
    EXPECT_EQ(store::read_backlog(store_->shards()).value().running_calls, 0);
    EXPECT_FALSE(run({result_of(call)}).after.turns);
    EXPECT_EQ(texts().back(), "echo here");
  }
  EXPECT_EQ(std::ranges::count(texts(), "And now?"), 0);
}

TEST_F(FollowUps, SilenceBeginsWithTheAnswerHoweverLateThatCame) {
  const Event late = message("hi");
  clock_.advance(19min);
  run({late});
  ASSERT_EQ(waiting().size(), 1U);
  EXPECT_EQ(waiting().at(0).due_at, clock_.now() + 20min);
  EXPECT_EQ(waiting().at(0).plan.expires_at, clock_.now() + 4h);
}

TEST_F(FollowUps, JourneyLimitsFollowUpsOfADayOverAllSessions) {
  set_up("{after: 20m, flow: Nudge, maxPerSession: 5, maxPerDay: 2}");
  const auto ask = [this] {
    run({message("hi")});
    pass(20min);
    clock_.advance(31min);
  };
  for (int i = 0; i < 4; ++i) ask();
  EXPECT_EQ(std::ranges::count(texts(), "Still there?"), 2);
  clock_.advance(24h);
  ask();
  EXPECT_EQ(std::ranges::count(texts(), "Still there?"), 3);
}

TEST_F(FollowUps, ClockThatIsSetMakesNoSilenceLongerOrShorter) {
  std::chrono::milliseconds steady{0};
  TimerClock timer_clock(clock_, [&] { return steady; });
  timer_clock_ = &timer_clock;
  for (const auto jump : {24h, -24h, -24h}) {
    run({message("hi")});
    clock_.advance(jump);
    ASSERT_EQ(waiting().size(), 1U);
    EXPECT_EQ(waiting().at(0).due_at, clock_.now() + timer_clock.offset() + 20min);
    steady += 20min;
    const TurnBatch batch = pass(20min);
    EXPECT_EQ(batch.after.follow_ups_sent, 1U) << "the follow-up has not expired";
    write("UPDATE sessions SET flow_state = 'null'");  // resets the counts of follow-ups
  }
}

TEST_F(FollowUps, FollowUpsBeyondTheMonthlyQuotaAreDropped) {
  write("UPDATE proactive_tenants SET follow_ups_per_month = 1");
  for (int i = 0; i < 2; ++i) {
    run({message("hi")});
    pass(20min);
  }
  EXPECT_EQ(std::ranges::count(texts(), "Still there?"), 1);
}

}  // namespace
}  // namespace conversed::daemon
