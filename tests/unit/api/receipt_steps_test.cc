// The waterfall of a receipt.
#include "api/operations/receipt_steps.h"

#include <gtest/gtest.h>

namespace conversed::api {
namespace {

using model::from_unix_ms;
using nlohmann::json;
using Steps = std::vector<std::string>;

// A receipt whose rows have these bodies and times, in milliseconds.
store::Receipt receipt_of(const std::vector<std::pair<std::int64_t, const char*>>& rows) {
  store::Receipt receipt;
  for (const auto& [at, body] : rows) {
    receipt.rows.push_back(
        {static_cast<std::int64_t>(receipt.rows.size() + 1), from_unix_ms(at), json::parse(body)});
  }
  return receipt;
}

// Each step as "what cause from-to", in milliseconds.
Steps shown(const store::Receipt& receipt, bool is_kept = false) {
  Steps shown;
  for (const auto& step : steps_of(receipt, is_kept)) {
    std::string text(to_string(step.what));
    if (step.cause != ReceiptStep::Cause::none) text += " " + std::string(to_string(step.cause));
    const auto from = model::to_unix_ms(step.from);
    text += " " + std::to_string(from) + "-";
    if (step.took) text += std::to_string(from + step.took->count() / 1000);
    shown.push_back(text);
  }
  return shown;
}

constexpr const char* accepted_turn =
    R"({"what":"turn","accepted":{"type":"inject","at":100},"at":110,"us":5000,"outputs":[1,1]})";

TEST(ReceiptSteps, EachGapHasItsCause) {
  auto receipt = receipt_of(
      {{120, accepted_turn}, {140, R"({"what":"delivery","seq":1,"try":1,"at":125,"us":7000})"}});
  receipt.outputs = {{.id = "a-1", .seq = 1}};
  EXPECT_EQ(shown(receipt),
            (Steps{"accepted 100-100", "waited queue 100-110", "turn 110-115",
                   "waited commit 115-120", "waited connection 120-125", "delivery 125-132"}));
}

TEST(ReceiptSteps, DroppedOutputAnnouncesNoNextTry) {
  auto receipt = receipt_of(
      {{120, accepted_turn},
       {140, R"({"what":"delivery","seq":1,"try":1,"status":503,"next":900,"at":125,"us":7000})"},
       {200,
        R"({"what":"delivery","seq":1,"at":200,"done":"dropped","by":"ann","deadLetter":"d"})"}});
  receipt.outputs = {{.id = "a-1", .seq = 1}};
  EXPECT_EQ(shown(receipt),
            (Steps{"accepted 100-100", "waited queue 100-110", "turn 110-115",
                   "waited commit 115-120", "waited connection 120-125", "delivery 125-132",
                   "waited retry 132-200", "delivery 200-200"}));
  for (const auto& step : steps_of(receipt)) EXPECT_FALSE(step.details.contains("next"));
  EXPECT_EQ(steps_of(receipt).back().details,
            (json{{"seq", 1}, {"done", "dropped"}, {"by", "ann"}, {"deadLetter", "d"}}));
}

TEST(ReceiptSteps, ReplayedOutputWaitsFromItsReplayOn) {
  auto receipt = receipt_of(
      {{120, accepted_turn},
       {140,
        R"({"what":"delivery","seq":1,"try":1,"status":410,"ended":"gone","deadLetter":"d","at":125,"us":7000})"},
       {200, R"({"what":"delivery","seq":1,"at":200,"done":"replayed","deadLetter":"d"})"}});
  receipt.outputs = {{.id = "a-1", .seq = 1, .pending = true}};
  const auto steps = shown(receipt);
  EXPECT_EQ(steps.at(6), "delivery 200-200");
  EXPECT_EQ(steps.at(7), "waited connection 200-");
}

TEST(ReceiptSteps, EqualTriesAreOneStepFromTheFirstToTheLast) {
  auto receipt = receipt_of(
      {{120, accepted_turn},
       {340, R"({"what":"delivery","seq":1,"try":3,"tries":3,"since":125,"at":325,"us":7000})"}});
  receipt.outputs = {{.id = "a-1", .seq = 1}};
  EXPECT_EQ(shown(receipt),
            (Steps{"accepted 100-100", "waited queue 100-110", "turn 110-115",
                   "waited commit 115-120", "waited connection 120-125", "delivery 125-332"}));
  EXPECT_EQ(steps_of(receipt).back().details, (json{{"seq", 1}, {"try", 3}, {"tries", 3}}));
}

TEST(ReceiptSteps, WaitForAnOutputOfAnEarlierEventIsNoWaitForAConnection) {
  auto receipt = receipt_of(
      {{120, accepted_turn}, {190, R"({"what":"delivery","seq":1,"try":1,"at":185,"us":1000})"}});
  receipt.outputs = {{.id = "a-1", .seq = 1}};
  receipt.delivered_before = from_unix_ms(180);
  const auto delivered = shown(receipt);
  ASSERT_EQ(delivered.size(), 7U);
  EXPECT_EQ(delivered[4], "waited output 120-180");
  EXPECT_EQ(delivered[5], "waited connection 180-185");
  receipt.rows.pop_back();
  receipt.outputs.front().pending = true;
  receipt.outputs.front().is_behind = true;
  EXPECT_EQ(shown(receipt).back(), "waited output 120-");
}

TEST(ReceiptSteps, WaitBehindOthersOfTheSessionSaysHowMany) {
  const auto steps = steps_of(receipt_of(
      {{120, R"({"what":"turn","accepted":{"at":100},"behind":3,"at":110,"us":1000})"}}));
  EXPECT_EQ(steps.at(1).cause, ReceiptStep::Cause::session);
  EXPECT_EQ(steps.at(1).details, (json{{"behind", 3}}));
  EXPECT_FALSE(steps.at(2).details.contains("behind"));
}

TEST(ReceiptSteps, InboxCallsAndRetriesAreInTheOrderOfTime) {
  // The mark of a call may be committed after the Turn of its result.
  const auto receipt = receipt_of(
      {{105, R"({"what":"waits","accepted":{"at":100},"behind":1,"blockedBy":"x-c1"})"},
       {212, R"({"what":"turn","at":200,"us":2000,"waitsFor":{"id":"y-c1","to":"h"}})"},
       {231, R"({"what":"call","id":"y-c1","try":1,"at":220,"us":10000,"status":503,"next":300})"},
       {335, R"({"what":"turn","event":"callResult","at":330,"us":1000})"},
       {336, R"({"what":"call","id":"y-c1","try":2,"at":300,"us":20000,"status":200})"}});
  EXPECT_EQ(
      shown(receipt),
      (Steps{"accepted 100-100", "waited queue 100-105", "waited session 105-200", "turn 200-202",
             "waited commit 202-212", "waited call 212-220", "call 220-230", "waited retry 230-300",
             "call 300-320", "waited queue 320-330", "turn 330-331", "waited commit 331-335"}));
}

TEST(ReceiptSteps, TimerIsSlept) {
  const auto receipt =
      receipt_of({{112, R"({"what":"turn","accepted":{"at":100},"at":100,"us":2000,)"
                        R"("waitsFor":{"id":"y-c1","until":900}})"},
                  {904, R"({"what":"turn","event":"timer","at":903,"us":1000})"}});
  EXPECT_EQ(shown(receipt).at(3), "waited sleep 112-903");
}

TEST(ReceiptSteps, CollectedEventWaitsUntilItRunsWithOthers) {
  auto receipt = receipt_of({{112, R"({"what":"turn","accepted":{"at":100},"at":100,"us":2000,)"
                                   R"("collected":true})"}});
  EXPECT_EQ(shown(receipt, true).back(), "waited collect 112-");
  EXPECT_EQ(shown(receipt).back(), "waited commit 102-112") << "its session was reset";
  receipt.rows.push_back(
      {2, from_unix_ms(905), json::parse(R"({"what":"ran","at":900,"turnOf":"b"})")});
  EXPECT_EQ(shown(receipt), (Steps{"accepted 100-100", "turn 100-102", "waited commit 102-112",
                                   "waited collect 112-900", "ran 900-900"}));
  EXPECT_EQ(steps_of(receipt).back().details, (json{{"turnOf", "b"}}));
}

TEST(ReceiptSteps, OutputsOfASessionWaitForEachOther) {
  auto receipt = receipt_of(
      {{120, R"({"what":"turn","accepted":{"at":100},"at":100,"us":1000,"outputs":[1,2]})"},
       {130, R"({"what":"delivery","seq":1,"try":1,"at":121,"us":4000,"status":500,"next":500})"},
       {510, R"({"what":"delivery","seq":1,"try":2,"at":500,"us":4000,"status":200})"},
       {520, R"({"what":"delivery","seq":2,"try":1,"at":510,"us":4000,"status":200})"}});
  receipt.outputs = {{.id = "a-1", .seq = 1}, {.id = "a-2", .seq = 2}};
  const auto steps = shown(receipt);
  for (const char* step :
       {"waited connection 120-121", "delivery 121-125", "waited retry 125-500", "delivery 500-504",
        "waited output 120-504", "waited connection 504-510", "delivery 510-514"}) {
    EXPECT_NE(std::ranges::find(steps, step), steps.end()) << step;
  }
}

TEST(ReceiptSteps, LastStepIsOpenWhileTheEventIsNotFinished) {
  auto waits = receipt_of({{105, R"({"what":"waits","accepted":{"at":100},"behind":0})"}});
  EXPECT_EQ(shown(waits).back(), "waited queue 100-105");
  waits.waits_in_inbox = true;
  EXPECT_EQ(shown(waits).back(), "waited session 105-");
  auto runs = receipt_of({{112, R"({"what":"turn","accepted":{"at":100},"at":100,"us":2000,)"
                                R"("waitsFor":{"id":"y-c1","until":900}})"}});
  runs.runs = true;
  EXPECT_EQ(shown(runs).back(), "waited sleep 112-");
  auto undelivered = receipt_of({{120, accepted_turn}});
  undelivered.outputs = {{.id = "a-1", .seq = 1, .pending = true}};
  EXPECT_EQ(shown(undelivered).back(), "waited connection 120-");
  undelivered.rows.push_back(
      {2, from_unix_ms(140),
       json::parse(R"({"what":"delivery","seq":1,"try":1,"at":125,"us":7000,"next":500})")});
  EXPECT_EQ(shown(undelivered).back(), "waited retry 132-");
}

// Retention may have removed the first rows of a long execution.
TEST(ReceiptSteps, AreShownWithoutTheFirstRow) {
  EXPECT_EQ(shown(receipt_of({{904, R"({"what":"turn","event":"timer","at":903,"us":1000})"}})),
            (Steps{"turn 903-904"}));
  EXPECT_EQ(shown({}), Steps{});
}

}  // namespace
}  // namespace conversed::api
