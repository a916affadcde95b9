// Questions with a time-out, through the log and the store.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "store/conversation/calls.h"
#include "store/conversation/timers.h"
#include "tests/unit/daemon/follow_up_world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;

class TimeOuts : public FollowUpWorld {
 protected:
  // The rows of the questions' timers in the store.
  std::vector<model::PendingCall> timers() {
    std::vector<model::PendingCall> list;
    const auto due =
        store_->first().timers().due(clock_.now() + std::chrono::days(9'999), 0ms, 100);
    EXPECT_TRUE(due);
    for (const auto& one : due->timers) {
      if (one.claim.kind != Claim::Kind::timer) continue;
      const auto call = store_->first().calls().find(one.claim.id);
      EXPECT_TRUE(call && *call);
      list.push_back((*call)->call);
    }
    return list;
  }
  // The time-out event of the only timer, as the Scheduler makes it now.
  Event over() {
    const auto all = timers();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? Event{} : over(all.front());
  }
  Event over(const model::PendingCall& timer) {
    EXPECT_TRUE(timer.is_time_out);
    Event made = event("", EventType::time_out);
    made.text.reset();
    made.claim = Claim{Claim::Kind::timer, timer.id};
    return made;
  }
};

TEST_F(TimeOuts, UnansweredQuestionTimesOutOnce) {
  run({message("quick")});
  EXPECT_FALSE(stored().busy()) << "the next input is the answer";
  ASSERT_EQ(timers().size(), 1U);
  EXPECT_EQ(timers().at(0).due_at, clock_.now() + 10min);
  clock_.advance(10min);
  const Event fired = over();
  run({fired});
  EXPECT_EQ(texts(), (Texts{"Quick?", "too late for timeOut"}));
  EXPECT_TRUE(timers().empty()) << "the claim is consumed";
  EXPECT_FALSE(run({fired}).after.turns) << "appended twice, it has an effect once";
  run({message("me")});
  EXPECT_EQ(texts().back(), "echo me") << "the question has ended";
}

TEST_F(TimeOuts, AnswerThatIsFirstInTheLogWins) {
  run({message("quick")});
  clock_.advance(10min);
  const Event fired = over();
  // Both are in one batch, before the Scheduler knows the answer's effects.
  run({message("me"), fired});
  EXPECT_EQ(texts(), (Texts{"Quick?", "fast me"}));
  EXPECT_TRUE(timers().empty()) << "the answer removes the claim";
  run({fired});
  EXPECT_EQ(texts().size(), 2U);
}

TEST_F(TimeOuts, TimeOutThatIsFirstInTheLogWins) {
  run({message("quick")});
  clock_.advance(10min);
  run({over(), message("me")});
  EXPECT_EQ(texts(), (Texts{"Quick?", "too late for timeOut", "echo me"}));
}

TEST_F(TimeOuts, AskedAndAnsweredInOneBatchLeavesNoTimer) {
  run({message("quick"), message("me")});
  EXPECT_EQ(texts(), (Texts{"Quick?", "fast me"}));
  EXPECT_TRUE(timers().empty());
}

TEST_F(TimeOuts, MessageRestartsTheTimeAndAnInjectDoesNot) {
  run({message("name in time")});
  const auto first = timers().at(0);
  clock_.advance(4min);
  run({event("")});
  ASSERT_EQ(timers().size(), 1U);
  EXPECT_EQ(timers().at(0).id, first.id);
  EXPECT_EQ(timers().at(0).due_at, first.due_at);
  run({message(" ")});
  ASSERT_EQ(timers().size(), 1U) << "the earlier time-out is replaced";
  EXPECT_NE(timers().at(0).id, first.id);
  EXPECT_EQ(timers().at(0).due_at, clock_.now() + 10min);
  run({over(first)});
  EXPECT_EQ(texts(), (Texts{"In time?", "again", "again"}));
}

TEST_F(TimeOuts, WithoutABranchItIsAnAttempt) {
  run({message("name in time")});
  Event last;
  for (int i = 0; i < 3; ++i) {
    clock_.advance(10min);
    last = over();
    run({last});
  }
  clock_.advance(10min);
  EXPECT_EQ(texts(), (Texts{"In time?", "again", "again", "again"}));
  EXPECT_EQ(timers().at(0).id, last.id + "-w");
  run({over()});
  EXPECT_EQ(texts().back(), "gave up");
  EXPECT_TRUE(timers().empty());
}

// A Node `collect` sets a timer for each event that it keeps.
class Bursts : public TimeOuts {
 protected:
  void SetUp() override {
    TimeOuts::SetUp();
    run({message("gather")});
  }
  Event numbered(int n) {
    auto made = event("");
    made.data = {{"n", n}};
    return made;
  }
  store::Receipt receipt_of(const Event& made) {
    auto receipt = store_->first().receipts().get(made.id);
    EXPECT_TRUE(receipt) << receipt.error().message;
    return receipt ? *std::move(receipt) : store::Receipt();
  }
};

TEST_F(Bursts, EachEventReplacesTheTimer) {
  run({numbered(1)});
  const auto first = timers().at(0);
  EXPECT_EQ(first.due_at, clock_.now() + 10s);
  clock_.advance(9s);
  run({numbered(2)});
  ASSERT_EQ(timers().size(), 1U);
  EXPECT_EQ(timers().at(0).due_at, clock_.now() + 10s);
  EXPECT_FALSE(run({over(first)}).after.turns) << "the timer of an earlier event";
  EXPECT_EQ(texts(), Texts{});
  clock_.advance(10s);
  const auto fired = over();
  run({fired});
  EXPECT_EQ(texts(), Texts{"1 2"});
  EXPECT_TRUE(timers().empty());
  EXPECT_FALSE(run({fired}).after.turns) << "appended twice, it has an effect once";
  EXPECT_EQ(texts(), Texts{"1 2"});
}

TEST_F(Bursts, EventThatIsFirstInTheLogJoins) {
  run({numbered(1)});
  clock_.advance(10s);
  const auto fired = over();
  // All are in one batch, before the Scheduler knows the events' effects.
  run({numbered(2), fired});
  EXPECT_EQ(texts(), Texts{});
  run({numbered(3), fired});
  EXPECT_EQ(texts(), Texts{"1 2 3"}) << "the count";
  EXPECT_TRUE(timers().empty());
}

TEST_F(Bursts, TimeOutThatIsFirstInTheLogEndsTheBurst) {
  run({numbered(1)});
  clock_.advance(10s);
  run({over(), numbered(2)});
  EXPECT_EQ(texts(), (Texts{"1", "echo "})) << "the Flow has ended";
}

TEST_F(Bursts, OneBatchLeavesOneTimer) {
  run({numbered(1), numbered(2)});
  ASSERT_EQ(timers().size(), 1U);
  run({over()});
  EXPECT_EQ(texts(), Texts{"1 2"});
}

TEST_F(Bursts, ReceiptOfEachEventNamesTheTurnThatRanIt) {
  const auto first = numbered(1);
  const auto other = event("");
  const auto last = numbered(3);
  run({first, other});
  EXPECT_EQ(receipt_of(first).rows.at(0).body["collected"], true);
  EXPECT_FALSE(receipt_of(other).rows.at(0).body.contains("collected"));
  const auto second = numbered(2);
  run({second, last});
  EXPECT_EQ(texts(), Texts{"1 2 3"});
  for (const auto& kept : {first, second}) {
    const auto receipt = receipt_of(kept);
    ASSERT_EQ(receipt.rows.size(), 2U);
    EXPECT_EQ(receipt.rows[1].body,
              (nlohmann::json{
                  {"what", "ran"}, {"at", model::to_unix_ms(clock_.now())}, {"turnOf", last.id}}));
  }
  EXPECT_EQ(receipt_of(other).rows.size(), 1U);
  const auto turn = receipt_of(last).rows.at(0).body;
  EXPECT_EQ(turn["eventsRun"], 2);
  EXPECT_EQ(turn["events"], (nlohmann::json{first.id, second.id}));
  EXPECT_FALSE(turn.contains("collected"));
}

TEST_F(Bursts, ReceiptsOfOtherSessionsGetNoStep) {
  const auto foreign = numbered(7);
  const auto own = std::exchange(key_, session("quiet", "another"));
  auto elsewhere = foreign;
  elsewhere.session = key_;
  run({elsewhere});
  key_ = own;
  // Another program has written a record with the same id.
  auto logged = record(foreign);
  logged.record.value = R"({"v":1,"at":1,"data":{"n":7}})";
  EXPECT_EQ(commit_now(build({logged})), Outcome::committed);
  run({over()});
  EXPECT_EQ(texts(), Texts{"7"});
  EXPECT_EQ(receipt_of(foreign).rows.size(), 1U);
}

TEST_F(Bursts, EventsOfATurnThatFailsStay) {
  run({numbered(1), numbered(2)});
  clock_.advance(10s);
  run_refused({over()});
  ASSERT_EQ(letters().size(), 1U);
  EXPECT_TRUE(timers().empty());
  run({message("Hello?")});
  ASSERT_EQ(timers().size(), 1U) << "the next input sets the timer again";
  EXPECT_EQ(timers().at(0).due_at, clock_.now());
  run({over()});
  EXPECT_EQ(texts().back(), "1 2");
}

TEST_F(TimeOuts, SessionThatStartsAfreshLeavesNoTimer) {
  run({message("quick")});
  clock_.advance(31min);
  const Event fired = over();
  run({message("hello")});
  EXPECT_EQ(texts().back(), "echo hello");
  EXPECT_TRUE(timers().empty());
  EXPECT_FALSE(run({fired}).after.turns);
}

TEST_F(TimeOuts, QuestionThatIsNotAnsweredOutlastsTheSessionsExpiry) {
  run({message("quick")});
  clock_.advance(2h);
  run({over()});
  EXPECT_EQ(texts().back(), "too late for timeOut");
}

TEST_F(TimeOuts, FailedAnswerKeepsTheTime) {
  run({message("quick")});
  const auto before = timers().at(0);
  run_refused({message("me")});
  ASSERT_EQ(letters().size(), 1U);
  ASSERT_EQ(timers().size(), 1U);
  EXPECT_EQ(timers().at(0).due_at, before.due_at);
}

TEST_F(TimeOuts, FailedTimeOutIsADeadLetterAndTheQuestionWaitsOn) {
  run({message("quick")});
  clock_.advance(10min);
  run_refused({over()});
  ASSERT_EQ(letters().size(), 1U);
  EXPECT_EQ(letters().at(0).event.type, "timeOut");
  EXPECT_TRUE(timers().empty());
  run({message("me")});
  EXPECT_EQ(texts().back(), "fast me");
}

TEST_F(TimeOuts, QuestionThatLostItsTimeOutWaitsOn) {
  run({message("quick")});
  clock_.advance(10min);
  const Event fired = over();
  set_up("{after: 20m, flow: Nudge}", "type: text");
  const TurnBatch batch = run({fired});
  ASSERT_EQ(batch.after.log_lines.size(), 1U);
  EXPECT_NE(batch.after.log_lines[0].find("has no effect"), std::string::npos);
  EXPECT_TRUE(timers().empty());
  run({message("me")});
  EXPECT_EQ(texts(), (Texts{"Quick?", "fast me"}));
}

// The follow-up's own question gets the next message, unless the other question has timed out.
TEST_F(TimeOuts, QuestionBehindAFollowUpRunsInItsOwnFlow) {
  run({message("survey")});
  run({message("quick in a while")});
  const auto asked = timers().at(0);
  pass(20min);
  ASSERT_EQ(texts().back(), "How was it?");
  ASSERT_EQ(timers().size(), 1U);
  clock_.advance(30min);
  run({over(asked)});
  EXPECT_EQ(texts().back(), "too late for timeOut");
  run({message("fine")});
  EXPECT_EQ(texts().back(), "echo fine") << "the follow-up's question has ended, too";
}

TEST_F(TimeOuts, OneThatComesWhileAFollowUpIsAtACallWaitsForItsEnd) {
  run({message("slow")});
  run({message("quick in a while")});
  const auto asked = timers().at(0);
  pass(20min);
  ASSERT_TRUE(stored().busy());
  clock_.advance(30min);
  run({over(asked)});
  EXPECT_EQ(stored().inbox_size, 1);
  EXPECT_EQ(texts().back(), "Still there?");
  run({result_of(stored().execution->pending_call_id)});
  EXPECT_EQ(texts(),
            (Texts{"echo slow", "Quick?", "Still there?", "And now?", "too late for timeOut"}));
  EXPECT_EQ(stored().inbox_size, 0);
  EXPECT_TRUE(timers().empty());
}

TEST_F(TimeOuts, OneThatAnOperatorCancelledHasNoEffect) {
  run({message("quick")});
  const Event fired = over();
  ASSERT_TRUE(store_->first().timers().cancel(fired.claim->id));
  clock_.advance(10min);
  EXPECT_FALSE(run({fired}).after.turns);
  run({message("me")});
  EXPECT_EQ(texts(), (Texts{"Quick?", "fast me"})) << "the question still waited";
}

TEST_F(TimeOuts, ResetTakesTheTimerWithIt) {
  run({message("quick")});
  const Event fired = over();
  ASSERT_TRUE(store_->first().sessions().reset(key_, {}));
  EXPECT_TRUE(timers().empty());
  EXPECT_FALSE(run({fired}).after.turns);
}

}  // namespace
}  // namespace conversed::daemon
