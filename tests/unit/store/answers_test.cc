#include "store/conversation/answers.h"

#include "store/commit/row_writes.h"
#include "store/shards/backlog.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using model::Delivery;
using Stage = InputState::Stage;

class AnswersTest : public StoreTest {
 protected:
  // `offset` is the offset of the input's record.
  static AwaitedInput input(const std::string& id, std::int64_t offset) {
    return {key_of("ann"), id, model::Position{.epoch = 1, .partition = 3, .offset = offset}};
  }
  // Like turn() of fixture.h, with an execution that goes on.
  SessionCommit turn_of(const std::string& input_id, std::int64_t expected, std::int64_t offset) {
    SessionCommit commit = turn(key_of("ann"), expected, offset, Delivery::none);
    commit.outputs.front().input_id = input_id;
    commit.answers.uncut = {{input_id, clock_.now() + std::chrono::seconds(9)}};
    model::Execution execution;
    execution.input_id = input_id;
    execution.source = model::EventType::user_message;
    execution.pending_call_id = "call";
    execution.answer_until = clock_.now() + std::chrono::seconds(9);
    commit.after.execution = execution;
    return commit;
  }
  Stage stage(const AwaitedInput& which) { return look(which).stage; }
  InputState look(const AwaitedInput& which) {
    return store_->first().answers().look(which, clock_.now()).value();
  }
  model::Result<InputState> cut(const AwaitedInput& which) {
    std::promise<model::Result<InputState>> promise;
    store_->first().answers().cut(which, [&](auto state) { promise.set_value(std::move(state)); });
    return promise.get_future().get();
  }
};

TEST_F(AnswersTest, AnInputIsAtRestOncePositionExecutionAndInboxArePastIt) {
  EXPECT_EQ(stage(input("one", 1)), Stage::unseen);
  ASSERT_EQ(commit_now(turn_of("one", 0, 1)), Outcome::committed);
  EXPECT_EQ(stage(input("one", 1)), Stage::runs);
  SessionCommit waits = turn_of("one", 1, 2);
  waits.inbox.added = {{"two", "userMessage", "", R"({"v":1,"at":0,"text":"hi"})"}};
  ASSERT_EQ(commit_now(std::move(waits)), Outcome::committed);
  EXPECT_EQ(stage(input("two", 2)), Stage::runs);
  EXPECT_EQ(stage(input("three", 3)), Stage::unseen);
  SessionCommit ends = turn(key_of("ann"), 2, 3, Delivery::none);
  ends.inbox.removed = 1;
  ASSERT_EQ(commit_now(std::move(ends)), Outcome::committed);
  EXPECT_EQ(stage(input("one", 1)), Stage::at_rest);
  EXPECT_EQ(stage(input("two", 2)), Stage::at_rest);
  EXPECT_EQ(look(input("one", 1)).said.size(), 2U);
  auto elsewhere = input("one", 1);
  elsewhere.position->epoch = 2;
  EXPECT_EQ(stage(elsewhere), Stage::unseen) << "positions of two epochs can't be compared";
  elsewhere.position.reset();
  EXPECT_EQ(stage(elsewhere), Stage::unseen);
}

TEST_F(AnswersTest, AnAnswerToACutInputIsAConflictAndADeliveryIsNot) {
  ASSERT_EQ(commit_now(turn_of("one", 0, 1)), Outcome::committed);
  const auto state = cut(input("one", 1));
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->cut_behind, 1);
  EXPECT_EQ(state->said.size(), 1U);
  EXPECT_TRUE(*store_->first().answers().is_cut("one"));
  EXPECT_EQ(commit_now(turn_of("one", 1, 2)), Outcome::conflict);
  SessionCommit delivery = turn_of("one", 1, 2);
  delivery.answers.uncut.clear();
  delivery.outputs.front().delivery = Delivery::pending;
  EXPECT_EQ(commit_now(std::move(delivery)), Outcome::committed);
  EXPECT_EQ(read_backlog(store_->shards()).value().deliveries, 1);
}

TEST_F(AnswersTest, AnAnswerPastItsDeadlineIsAConflict) {
  SessionCommit late = turn_of("one", 0, 1);
  late.answers.uncut.front().until = clock_.now();
  EXPECT_EQ(commit_now(std::move(late)), Outcome::conflict);
}

TEST_F(AnswersTest, ACommitThatCutsKeepsAnEarlierCut) {
  ASSERT_EQ(commit_now(turn_of("one", 0, 1)), Outcome::committed);
  ASSERT_TRUE(cut(input("one", 1)));
  SessionCommit late = turn_of("one", 1, 2);
  late.answers.uncut.clear();
  late.answers.cuts = {{"one", 2}, {"two", 2}};
  ASSERT_EQ(commit_now(std::move(late)), Outcome::committed);
  EXPECT_EQ(look(input("one", 1)).cut_behind, 1);
  EXPECT_EQ(look(input("two", 2)).cut_behind, 2);
}

TEST_F(AnswersTest, AFailureIsNoneOfAnInputThatIsCut) {
  auto keep = [&](const std::string& id) {
    ASSERT_TRUE(store_->committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
      fail_input(writer.connection(), id, writer.timer_now());
      return {};
    }));
  };
  keep("failed");
  EXPECT_EQ(cut(input("failed", 1))->stage, Stage::failed);
  EXPECT_FALSE(*store_->first().answers().is_cut("failed"));
  ASSERT_TRUE(cut(input("cut", 2)));
  keep("cut");
  EXPECT_EQ(stage(input("cut", 2)), Stage::unseen);
}

TEST_F(AnswersTest, ACutIsKeptForADay) {
  ASSERT_TRUE(cut(input("one", 1)));
  clock_.advance(answer_lifetime);
  ASSERT_TRUE(store_->first().answers().prune(clock_.now(), clock_.now(), 10));
  EXPECT_TRUE(*store_->first().answers().is_cut("one"));
  clock_.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(store_->first().answers().prune(clock_.now(), clock_.now(), 10), 1);
  EXPECT_FALSE(*store_->first().answers().is_cut("one"));
}

TEST_F(AnswersTest, WhileTheStoreIsStoppedNothingIsCut) {
  store_->committer().stop();
  EXPECT_EQ(cut(input("one", 1)).error().code, model::Errc::unavailable);
}

}  // namespace
}  // namespace conversed::store
