// The receipts that batches of Turns write.
#include <algorithm>

#include "flows/turn/request_mark.h"
#include "store/commit/stored_steps.h"
#include "tests/unit/daemon/turn_batch_world.h"

namespace conversed::daemon {
namespace {

using nlohmann::json;

class TurnReceipts : public TurnBatchTest {
 protected:
  store::Receipt receipt_of(const Event& made) {
    auto receipt = store_->first().receipts().get(made.id);
    EXPECT_TRUE(receipt) << receipt.error().message;
    return receipt ? *std::move(receipt) : store::Receipt();
  }
  json row_of(const Event& made, std::size_t n) {
    const auto receipt = receipt_of(made);
    EXPECT_LT(n, receipt.rows.size());
    return n < receipt.rows.size() ? receipt.rows[n].body : json();
  }
};

TEST_F(TurnReceipts, TurnHasItsFlowItsNodesAndTheVariablesThatChanged) {
  auto made = event("profile");
  made.origin = {.daemon = "one", .user_id = "operator", .key = std::string(32, 'a')};
  a_look_ = std::chrono::milliseconds(3);
  clock_.advance(std::chrono::milliseconds(40));
  run({made});
  const auto row = row_of(made, 0);
  EXPECT_EQ(row["what"], "turn");
  EXPECT_EQ(row["accepted"], (json{{"type", "inject"},
                                   {"at", model::to_unix_ms(made.accepted_at)},
                                   {"daemon", "one"},
                                   {"by", "operator"},
                                   {"text", "profile"},
                                   {"position", {1, 0, 0}}}));
  EXPECT_EQ(row["at"], model::to_unix_ms(clock_.now()));
  EXPECT_EQ(row["us"], 3'000);
  EXPECT_EQ(row["flow"], "Count");
  EXPECT_EQ(row["version"], 1);
  EXPECT_EQ(row["nodes"].front(), "nodes[0]");
  EXPECT_EQ(row["nodes"].back(), "nodes[6]") << "where the Turn ended";
  EXPECT_EQ(row["nodesRun"], row["nodes"].size());
  EXPECT_EQ(row["changes"], json::parse(R"([
      {"path":"context.count","bytes":8,"value":1,"bytesBefore":0},
      {"path":"profile.seen","bytes":8,"value":1,"bytesBefore":0}])"));
  EXPECT_EQ(row["outputs"], (json{1, 1}));
  EXPECT_EQ(
      store_->first().receipts().find(key_.project_id, "the key", std::string(32, 'a'), 5).value(),
      std::vector{made.id});
}

TEST_F(TurnReceipts, WriteOfTheSameValueIsNoChange) {
  const auto told = [&] {
    const auto made = event("tell");
    run({result_of(run({made}).commit.calls.started.at(0).id)});
    return row_of(made, 1);
  };
  EXPECT_EQ(told()["changes"][0]["path"], "context.order");
  EXPECT_FALSE(told().contains("changes")) << "the second answer is the same";
}

TEST_F(TurnReceipts, ExecutionHasARowForEachOfItsTurns) {
  const auto made = event("tell");
  const auto call = run({made}).commit.calls.started.at(0);
  EXPECT_EQ(row_of(made, 0)["waitsFor"],
            (json{{"id", call.id}, {"to", "example.com"}, {"retries", 0}}));
  EXPECT_TRUE(receipt_of(made).runs);
  run({result_of(call.id)});
  const auto row = row_of(made, 1);
  EXPECT_EQ(row["event"], "callResult");
  EXPECT_FALSE(row.contains("accepted"));
  EXPECT_EQ(row["outputs"], (json{2, 1}));
  EXPECT_FALSE(receipt_of(made).runs);
}

TEST_F(TurnReceipts, KeepWhatAReplayNeeds) {
  auto first = event("profile");
  first.data = {{"size", 7}};
  run({first});
  EXPECT_EQ(row_of(first, 0)["accepted"]["recorded"], (json{{"data", {{"size", 7}}}}));
  EXPECT_EQ(row_of(first, 0)["recorded"], (json{{"begins", true}, {"changesProfile", true}}));

  const auto tells = event("tell");
  const auto call = run({tells}).commit.calls.started.at(0);
  EXPECT_FALSE(row_of(tells, 0)["accepted"].contains("recorded")) << "the row has its text";
  EXPECT_EQ(row_of(tells, 0)["recorded"],
            (json{{"profileVersion", 1}, {"request", flows::request_mark(call)}}));
  run({result_of(call.id)});
  auto row = row_of(tells, 1);
  store::unpack_answer(row);
  EXPECT_EQ(
      row["recorded"]["result"],
      (json{{"id", call.id}, {"answer", {{"status", 200}, {"body", {{"state", "shipped"}}}}}}));

  key_ = session("plain", "another");
  const auto begins = event(std::string(150, 'a') + std::string(100, 'b'));
  run({begins});
  EXPECT_EQ(row_of(begins, 0)["accepted"]["recorded"], (json{{"rest", std::string(50, 'b')}}));
  EXPECT_EQ(row_of(begins, 0)["recorded"],
            (json{{"begins", true}, {"profile", {{"seen", 1}}}, {"profileVersion", 1}}));
}

TEST_F(TurnReceipts, LeaveOutWhatIsTooLargeAndSaySo) {
  auto large = event("tell");
  large.data = std::string(17'000, 'x');
  const auto call = run({large}).commit.calls.started.at(0);
  EXPECT_EQ(row_of(large, 0)["accepted"]["recorded"], (json{{"bytes", 17'002}}));
  auto answer = result_of(call.id);
  answer.result->body = std::string(200'000, 'y');
  run({answer});
  EXPECT_EQ(row_of(large, 1)["recorded"]["result"]["id"], call.id);
  EXPECT_GT(row_of(large, 1)["recorded"]["result"]["bytes"], 200'000);
  EXPECT_FALSE(row_of(large, 1)["recorded"]["result"].contains("answer"));
}

TEST_F(TurnReceipts, EventThatWaitsInTheInboxSaysForWhat) {
  const auto first = event("call");
  const auto call = run({first}).commit.calls.started.at(0);
  const auto b = event("b");
  const auto c = event("c");
  run({b});
  run({c});
  EXPECT_EQ(row_of(c, 0)["what"], "waits");
  EXPECT_EQ(row_of(c, 0)["behind"], 1);
  EXPECT_EQ(row_of(c, 0)["blockedBy"], call.id);
  EXPECT_TRUE(receipt_of(c).waits_in_inbox);
  EXPECT_EQ(receipt_of(first).others, 2);
  run({result_of(call.id)});
  EXPECT_EQ(row_of(c, 1)["what"], "turn");
  EXPECT_FALSE(row_of(c, 1).contains("accepted")) << "the first row has it";
  EXPECT_FALSE(receipt_of(c).waits_in_inbox);
  EXPECT_EQ(receipt_of(first).others, 0);
}

TEST_F(TurnReceipts, AreLinkedInTheOrderOfTheLog) {
  const auto first = event("call");
  const auto waits = event("b");
  const auto said = event("said", EventType::notify);
  const auto call = run({first, waits, said}).commit.calls.started.at(0);
  run({result_of(call.id)});
  EXPECT_EQ(stored().last_receipt, said.id);
  EXPECT_EQ(receipt_of(said).previous, waits.id);
  EXPECT_EQ(receipt_of(waits).previous, first.id);
  EXPECT_EQ(receipt_of(first).previous, "");
}

TEST_F(TurnReceipts, EventsOfOneRunSayHowManyWentBefore) {
  const auto a = event("a");
  const auto b = event("b");
  const auto c = event("c");
  run({a, b, c});
  EXPECT_FALSE(row_of(a, 0).contains("behind"));
  EXPECT_EQ(row_of(b, 0)["behind"], 1);
  EXPECT_EQ(row_of(c, 0)["behind"], 2);
}

TEST_F(TurnReceipts, DeadLetterIsNamedWithItsReason) {
  const auto made = event("loop");
  run({made});
  const auto row = row_of(made, 0);
  EXPECT_EQ(row["deadLetter"], letters().at(0).id);
  EXPECT_EQ(row["reason"], letters().at(0).reason.substr(0, 200));
}

TEST_F(TurnReceipts, EventsOfOtherProgramsHaveNone) {
  auto logged = record(event("a"));
  logged.record.value = R"({"v":1,"at":1,"text":"a"})";
  EXPECT_EQ(commit_now(build({logged})), Outcome::committed);
  EXPECT_EQ(texts().size(), 1U);
  EXPECT_EQ(stored().last_receipt, "");
}

}  // namespace
}  // namespace conversed::daemon
