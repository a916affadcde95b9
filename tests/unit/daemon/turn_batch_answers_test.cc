// The receiver of an execution's outputs: the client of its message until the cut, then the
// webhook.
#include "tests/unit/daemon/turn_batch_world.h"

namespace conversed::daemon {
namespace {

using Stage = store::InputState::Stage;

class TurnBatchAnswersTest : public TurnBatchTest {
 protected:
  void SetUp() override {
    TurnBatchTest::SetUp();
    key_ = session("hooked", "s");
  }

  Event message(const std::string& text) { return event(text, EventType::user_message); }
  Event notify() { return event("said", EventType::notify); }
  static Texts texts_of(const store::InputState& state) {
    Texts said;
    for (const auto& output : state.said) said.push_back(output.text);
    return said;
  }
  // Builds the batch again, as after a conflict with another write.
  TurnBatch run_again(const std::vector<queue::LogRecord>& records) {
    auto batch =
        build_turn_batch(context(), {.key = key_, .records = records, .after_conflict = true});
    EXPECT_TRUE(batch && commit_now(*batch) == Outcome::committed);
    return batch ? *std::move(batch) : TurnBatch();
  }
};

TEST_F(TurnBatchAnswersTest, OutputsOfAMessageAreItsAnswerEvenWithoutItsClient) {
  const Event asked = message("hi");
  const TurnBatch batch = run({asked});
  EXPECT_EQ(for_webhook(), Texts{});
  EXPECT_EQ(batch.commit.answers.progressed, Texts{asked.id});
  const auto state = look(asked);
  EXPECT_EQ(state.stage, Stage::at_rest);
  EXPECT_EQ(texts_of(state), (Texts{"one hi 1"}));
  EXPECT_FALSE(state.cut_behind);
}

TEST_F(TurnBatchAnswersTest, WithoutADeadlineAllOutputsGoToTheWebhook) {
  Event asked = message("tell");
  asked.answer_until.reset();  // `Prefer: respond-async`, or a replayed dead letter
  const auto call = run({asked}).commit.calls.started.at(0).id;
  EXPECT_EQ(look(asked).cut_behind, 0);
  run({result_of(call)});
  EXPECT_EQ(for_webhook(), (Texts{"looking", "one tell 1"}));
}

TEST_F(TurnBatchAnswersTest, OutputsAfterACutGoToTheWebhook) {
  const Event asked = message("ask");
  const auto first = run({asked}).commit.calls.started.at(0).id;
  const auto state = cut(asked);
  EXPECT_EQ(state.stage, Stage::runs);
  EXPECT_EQ(texts_of(state), (Texts{"looking"}));
  const std::vector records{record(result_of(first))};
  EXPECT_EQ(commit_now(build(records)), Outcome::conflict);
  const auto second = run_again(records).commit.calls.started.at(0).id;
  EXPECT_EQ(for_webhook(), (Texts{"found"}));
  // Later batches read the cut from the execution.
  run({result_of(second)});
  EXPECT_EQ(for_webhook(), (Texts{"found", "one ask 1"}));
  EXPECT_EQ(look(asked).cut_behind, 1);
  EXPECT_EQ(look(asked).stage, Stage::at_rest);
}

TEST_F(TurnBatchAnswersTest, OutputsOfAMessageThatIsCutBeforeItRunsGoToTheWebhook) {
  const Event asked = message("hi");
  const std::vector records{record(asked)};
  EXPECT_EQ(cut(asked).stage, Stage::unseen);
  EXPECT_EQ(commit_now(build(records)), Outcome::conflict);
  run_again(records);
  EXPECT_EQ(for_webhook(), (Texts{"one hi 1"}));
}

TEST_F(TurnBatchAnswersTest, OutputsOfAMessageThatIsCutInTheInboxGoToTheWebhook) {
  const auto call = run({event("call")}).commit.calls.started.at(0).id;
  const Event asked = message("hi");
  run({asked});
  EXPECT_EQ(cut(asked).stage, Stage::runs);
  run_again({record(result_of(call))});
  EXPECT_EQ(for_webhook(), (Texts{"one call 1", "one hi 2"}));
}

TEST_F(TurnBatchAnswersTest, AtRestAMessageIsNotCut) {
  const Event asked = message("hi");
  run({asked});
  const auto state = cut(asked);
  EXPECT_EQ(state.stage, Stage::at_rest);
  EXPECT_EQ(texts_of(state), (Texts{"one hi 1"}));
  EXPECT_FALSE(look(asked).cut_behind);
}

TEST_F(TurnBatchAnswersTest, ACutComesOnce) {
  const Event asked = message("tell");
  run({asked});
  EXPECT_EQ(cut(asked).cut_behind, 1);
  run({notify()});
  EXPECT_EQ(cut(asked).cut_behind, 1);
}

TEST_F(TurnBatchAnswersTest, PastItsDeadlineAMessageIsCutByTheTurnItself) {
  const Event asked = message("tell");
  const auto call = run({asked}).commit.calls.started.at(0).id;
  clock_.advance(turn_timeout);
  run({result_of(call)});
  EXPECT_EQ(for_webhook(), (Texts{"one tell 1"}));
  // A client that still waits gets the rest of the answer.
  const auto state = look(asked);
  EXPECT_EQ(state.cut_behind, 1);
  EXPECT_EQ(state.stage, Stage::at_rest);
}

TEST_F(TurnBatchAnswersTest, AnAnswerThatIsCommittedPastItsDeadlineGoesToTheWebhook) {
  const std::vector records{record(message("hi"))};
  const TurnBatch late = build(records);
  clock_.advance(turn_timeout);
  EXPECT_EQ(commit_now(late), Outcome::conflict);
  run_again(records);
  EXPECT_EQ(for_webhook(), (Texts{"one hi 1"}));
}

TEST_F(TurnBatchAnswersTest, ClockThatIsSetCutsNoMessage) {
  std::chrono::milliseconds steady{0};
  TimerClock unset(clock_, [&] { return steady; });
  timer_clock_ = &unset;
  for (const auto jump : {std::chrono::hours(24), std::chrono::hours(-24)}) {
    const std::vector records{record(message("hi"))};
    clock_.advance(jump);
    const TurnBatch batch = build(records);
    clock_.advance(jump);
    EXPECT_EQ(commit_now(batch), Outcome::committed);
  }
  EXPECT_EQ(for_webhook(), Texts{});
  const std::vector records{record(message("bye"))};
  steady += turn_timeout;
  EXPECT_EQ(build(records).commit.answers.cuts.size(), 1U);
  timer_clock_ = nullptr;
}

TEST_F(TurnBatchAnswersTest, OutputsOfOtherEventsDoNotWaitForAnAnswer) {
  const Event asked = message("tell");
  const auto call = run({asked}).commit.calls.started.at(0).id;
  run({notify()});
  EXPECT_EQ(for_webhook(), (Texts{"said"}));
  run({result_of(call), event("next")});
  EXPECT_EQ(for_webhook(), (Texts{"said", "one next 2"}));
}

TEST_F(TurnBatchAnswersTest, ManyMessagesAreAnsweredByOneBatch) {
  const Event first = message("a");
  const Event second = message("b");
  auto answer = wait_for(first);
  auto other = wait_for(second);
  const TurnBatch batch = run({first, second});
  EXPECT_EQ(batch.after.answered.size(), 2U);
  EXPECT_FALSE(batch.drain_more);
}

TEST_F(TurnBatchAnswersTest, AnAnswerIsComposedForLocalClientsOnly) {
  EXPECT_TRUE(run({message("a")}).after.answered.empty());
  const Event awaited = message("tell");
  auto answer = wait_for(awaited);
  const TurnBatch ended = run({result_of(run({awaited}).commit.calls.started.at(0).id)});
  ASSERT_EQ(ended.after.answered.size(), 1U);
  EXPECT_NE(ended.after.answered[0].answer->body.find("looking\\none tell 2"), std::string::npos);
}

TEST_F(TurnBatchAnswersTest, AKeyedMessageThatIsCutKeepsAllItsOutputs) {
  const Event asked = keyed_message("tell");
  const auto call = run({asked}).commit.calls.started.at(0).id;
  cut(asked);
  const TurnBatch ended = run_again({record(result_of(call))});
  EXPECT_TRUE(ended.after.answered.empty()) << "a cut message is answered per client";
  EXPECT_EQ(ended.commit.answers.progressed, Texts{asked.id});
  const auto state = look(asked);
  ASSERT_TRUE(state.kept);
  EXPECT_NE(state.kept->find("looking\\none tell 1"), std::string::npos);
}

TEST_F(TurnBatchAnswersTest, TheKeyOfACutMessageThatFailsIsSpent) {
  key_ = session("plain", "s");
  const Event asked = keyed_message("tell");
  const auto call = run({asked}).commit.calls.started.at(0).id;
  cut(asked);
  const Event result = result_of(call);
  const std::vector records{record(result)};
  auto batch = build_turn_batch(context(), {.key = key_,
                                            .records = records,
                                            .after_conflict = true,
                                            .refused = {{result.id, "refused"}}});
  ASSERT_TRUE(batch);
  ASSERT_EQ(commit_now(*batch), Outcome::committed);
  EXPECT_EQ(kept_status(asked), 200);
}

TEST_F(TurnBatchAnswersTest, OtherDaemonsHearOfAFailure) {
  key_ = session("plain", "s");
  const Event asked = message("hi");
  run_refused({asked});
  EXPECT_EQ(look(asked).stage, Stage::failed);
}

TEST_F(TurnBatchAnswersTest, AFailureWithAnErrorTextIsAnAnswer) {
  const Event asked = message("hi");
  run_refused({asked});
  EXPECT_EQ(look(asked).stage, Stage::at_rest);
  EXPECT_EQ(texts_of(look(asked)), (Texts{"Sorry."}));
  EXPECT_EQ(for_webhook(), Texts{});
}

TEST_F(TurnBatchAnswersTest, AResetBringsAMessageToRest) {
  const Event asked = message("tell");
  run({asked});
  ASSERT_TRUE(store_->first().sessions().reset(key_));
  EXPECT_EQ(look(asked).stage, Stage::failed);
  const Event later = message("tell");
  run({later});
  cut(later);
  ASSERT_TRUE(store_->first().sessions().reset(key_));
  EXPECT_EQ(look(later).stage, Stage::at_rest) << "its client has its answer";
  Event accepted = keyed_message("tell");
  accepted.answer_until.reset();
  run({accepted});
  ASSERT_TRUE(store_->first().sessions().reset(key_));
  EXPECT_EQ(look(accepted).stage, Stage::at_rest) << "its key is spent";
}

TEST_F(TurnBatchAnswersTest, RepeatsOfAMessageHearOfItsProgress) {
  run({event("call")});
  const Event asked = keyed_message("hi");
  EXPECT_EQ(run({asked}).commit.answers.progressed, Texts{asked.id});
  EXPECT_EQ(look(asked).answer_until, asked.answer_until);
}

}  // namespace
}  // namespace conversed::daemon
