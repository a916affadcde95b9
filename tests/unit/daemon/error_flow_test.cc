// The Flow that an Endpoint names for errors, and the commit of what it does.
#include "tests/unit/daemon/turn_batch_world.h"

namespace conversed::daemon {
namespace {

class ErrorFlowTest : public TurnBatchTest {
 protected:
  void SetUp() override {
    TurnBatchTest::SetUp();
    key_ = session("handled", "s");
  }
};

TEST_F(ErrorFlowTest, RunsInTheCommitOfTheDeadLetter) {
  const Event message = keyed_message("loop");
  const TurnBatch batch = run({message, event("b")});
  EXPECT_EQ(batch.commit.dead_letters.size(), 1U);
  ASSERT_EQ(batch.commit.outputs.size(), 1U);
  EXPECT_EQ(batch.commit.outputs[0].text, "sorry for loop");
  EXPECT_EQ(batch.commit.outputs[0].input_id, message.id);
  ASSERT_EQ(batch.commit.calls.started.size(), 1U);
  EXPECT_TRUE(stored().busy()) << "the other event waits";
  run({message});
  EXPECT_EQ(letters().size(), 1U);
  run({result_of(batch.commit.calls.started[0].id)});
  EXPECT_EQ(texts(), (Texts{"sorry for loop", "shipped", "one b 1"}));
  EXPECT_EQ(letters().size(), 1U);
  EXPECT_NE(letters()[0].reason.find("again"), std::string::npos) << "the first error";
  EXPECT_EQ(letters()[0].flow, "Count");
  EXPECT_EQ(kept_status(message), 200);
}

TEST_F(ErrorFlowTest, AnErrorInItEndsThere) {
  const TurnBatch batch = run({event("loop"), event("b")});
  EXPECT_EQ(texts(), (Texts{"Sorry.", "one b 1"}));
  ASSERT_EQ(letters().size(), 1U);
  EXPECT_EQ(letters()[0].flow, "Count");
  ASSERT_EQ(batch.after.log_lines.size(), 1U);
  EXPECT_NE(batch.after.log_lines[0].find("endless"), std::string::npos);
}

TEST_F(ErrorFlowTest, AnErrorInALaterTurnOfItEndsThere) {
  const auto call = run({event("loop", EventType::user_message)}).commit.calls.started.at(0).id;
  Event refused = result_of(call);
  refused.result->error_code = "http_status";
  refused.result->status = 500;
  run({refused, event("b")});
  EXPECT_EQ(texts(), (Texts{"sorry for loop", "Sorry.", "one b 1"}));
  ASSERT_EQ(letters().size(), 2U);
}

TEST_F(ErrorFlowTest, HandlesTheResultOfACallInTheExecutionThatFailed) {
  const Event message = event("ask", EventType::user_message);
  const auto call = run({message}).commit.calls.started.at(0).id;
  Event refused = result_of(call);
  refused.result->error_code = "http_status";
  refused.result->status = 500;
  const TurnBatch batch = run({refused});
  ASSERT_EQ(batch.commit.outputs.size(), 1U);
  EXPECT_EQ(batch.commit.outputs[0].input_id, message.id);
  ASSERT_EQ(batch.commit.calls.started.size(), 1U);
  run({result_of(batch.commit.calls.started[0].id)});
  EXPECT_EQ(texts(), (Texts{"looking", "sorry for ask", "shipped"}));
  EXPECT_EQ(letters().size(), 1U);
  EXPECT_FALSE(stored().busy());
}

TEST_F(ErrorFlowTest, ItsEventIsTakenAsBegunBeforeEachOfBothTurns) {
  const std::vector records{record(event("a")), record(event("loop", EventType::user_message))};
  Texts begun;
  const auto begin = [&](const Beginning& beginning) {
    begun.push_back(beginning.event.event_id);
    return model::Result<void>();
  };
  const auto batch = build_turn_batch(context(), {.key = key_, .records = records, .begin = begin});
  ASSERT_TRUE(batch);
  const auto& first = records[0].record.id;
  const auto& failing = records[1].record.id;
  EXPECT_EQ(begun, (Texts{first, failing, first, failing}));
}

TEST_F(ErrorFlowTest, DoesNotRunForAnEventThatIsNotTaken) {
  run_refused({event("a", EventType::user_message)});
  EXPECT_EQ(texts(), (Texts{"Sorry."}));
  EXPECT_EQ(letters().size(), 1U);
}

}  // namespace
}  // namespace conversed::daemon
