// The effects of one session's records: Turns, inboxes, answers.
#include <condition_variable>
#include <mutex>

#include "daemon/turns/turn_clock.h"
#include "tests/unit/daemon/turn_batch_world.h"

namespace conversed::daemon {
namespace {

TEST_F(TurnBatchTest, TurnsOfOneRunSeeWhatTheOnesBeforeThemLeft) {
  const TurnBatch batch = run({event("a"), event("b"), event("c")});
  EXPECT_EQ(batch.after.turns, 3u);
  EXPECT_EQ(texts(), (Texts{"one a 1", "one b 2", "one c 3"}));
  EXPECT_EQ(stored().version, 1);
}

TEST_F(TurnBatchTest, TurnsFindTheProjectsFlowsAndLexicons) {
  key_ = session("trip", "s");
  run({event("hi")});
  run({event("PARIS, please")});
  EXPECT_EQ(texts(), (Texts{"hello", "to Paris"}));
}

TEST_F(TurnBatchTest, RecordsThatCameAgainHaveNoEffects) {
  const std::vector records{record(event("a")), record(event("b"))};
  EXPECT_EQ(commit_now(build(records)), Outcome::committed);
  EXPECT_FALSE(build(records).changes);
  EXPECT_EQ(texts(), (Texts{"one a 1", "one b 2"}));
}

TEST_F(TurnBatchTest, ABatchThatLostIsBuiltAgainFromWhatIsStored) {
  const TurnBatch loser = build({record(event("a"))});
  run({event("b")});
  EXPECT_EQ(commit_now(loser), Outcome::conflict);
  EXPECT_EQ(texts(), (Texts{"one b 1"}));
}

TEST_F(TurnBatchTest, APositionOfAPastEpochStopsConsumption) {
  auto newer = record(event("a"));
  newer.position.epoch = 2;
  EXPECT_EQ(commit_now(build({newer})), Outcome::committed);
  auto past = record(event("b"));
  past.position = {.epoch = 1, .partition = 0, .offset = 100};
  const std::vector records{past};
  const auto batch = build_turn_batch(context(), {.key = key_, .records = records});
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code, model::Errc::conflict);
}

TEST_F(TurnBatchTest, EventsDuringACallWaitAndRunInOrder) {
  const TurnBatch called = run({event("call"), event("b"), event("c")});
  ASSERT_EQ(called.commit.calls.started.size(), 1u);
  EXPECT_TRUE(texts().empty());
  EXPECT_EQ(stored().inbox_size, 2);
  run({event("d")});
  run({result_of(called.commit.calls.started[0].id)});
  EXPECT_EQ(texts(), (Texts{"one call 1", "one b 2", "one c 3", "one d 4"}));
  EXPECT_EQ(stored().inbox_size, 0);
}

TEST_F(TurnBatchTest, EventsKeepTheirOrderAroundAResultInBatchesOfAnySize) {
  const std::string call = run({event("call")}).commit.calls.started.at(0).id;
  run({event("b")});
  const TurnBatch batch = run({event("c"), event("d"), result_of(call), event("e")});
  EXPECT_EQ(texts(), (Texts{"one call 1", "one b 2", "one c 3", "one d 4", "one e 5"}));
  EXPECT_FALSE(batch.drain_more);
  EXPECT_EQ(stored().inbox_size, 0);
}

TEST_F(TurnBatchTest, AnEventAfterAResultFailsInItsPlace) {
  for (const bool at_once : {false, true}) {
    key_ = session("sorry", at_once ? "at once" : "one by one");
    const std::string call = run({event("call")}).commit.calls.started.at(0).id;
    const std::vector<Event> events{event("loop"), result_of(call), event("e")};
    if (at_once) {
      run(events);
    } else {
      for (const auto& one : events) run({one});
    }
    EXPECT_EQ(texts(), (Texts{"one call 1", "Sorry.", "one e 2"})) << at_once;
    EXPECT_EQ(stored().inbox_size, 0);
  }
  EXPECT_EQ(letters().size(), 2U);
}

TEST_F(TurnBatchTest, EventsAddedToALongInboxWaitForAllOfIt) {
  const std::string call = run({event("call")}).commit.calls.started.at(0).id;
  std::vector<Event> events;
  for (int i = 0; i < 70; ++i) events.push_back(event(std::to_string(i)));
  run(events);
  EXPECT_TRUE(run({event("70"), result_of(call), event("71")}).drain_more);
  EXPECT_EQ(texts().size(), 65U);
  run({});
  EXPECT_EQ(texts().size(), 73U);
  EXPECT_EQ(texts()[71], "one 70 72");
  EXPECT_EQ(texts()[72], "one 71 73");
}

TEST_F(TurnBatchTest, ModelTokensAreCountedEvenIfTheTurnFails) {
  const auto counted = [&](bool fails) {
    const TurnBatch called = run({event("tell")});
    auto result = result_of(called.commit.calls.started.at(0).id);
    result.result->model_tokens = 42;
    if (fails) result.result->error_code = "status";
    std::int64_t amount = 0;
    const TurnBatch batch = run({result});
    EXPECT_EQ(batch.commit.dead_letters.size(), fails ? 1U : 0U);
    for (const auto& use : batch.commit.quota) {
      if (use.counter == store::model_tokens_counter) amount += use.amount;
    }
    return amount;
  };
  EXPECT_EQ(counted(false), 42);
  EXPECT_EQ(counted(true), 42);
}

TEST_F(TurnBatchTest, ANotifyWaitsForNoCall) {
  auto said = event("said", EventType::notify);
  said.data = {{"k", 1}};
  const std::string call = run({event("call"), event("b")}).commit.calls.started.at(0).id;
  const auto before = stored();
  const TurnBatch batch = run({said});
  EXPECT_EQ(batch.after.turns, 0u);
  EXPECT_EQ(texts(), (Texts{"said"}));
  EXPECT_EQ(stored().execution, before.execution);
  EXPECT_EQ(stored().inbox_size, 1);
  EXPECT_EQ(stored().last_activity_at, before.last_activity_at);
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"said", "one call 1", "one b 2"}));
  const auto output = store_->first().outbox().outputs(key_, 0, 1)->front();
  EXPECT_EQ(output.data, said.data);
  EXPECT_EQ(output.source, "bot");
  EXPECT_EQ(output.input_id, said.id);
  EXPECT_EQ(output.trace_id, said.trace_id);
}

TEST_F(TurnBatchTest, ANotifyBeginsNoConversation) {
  run({event("said", EventType::notify)});
  EXPECT_EQ(texts(), (Texts{"said"}));
  EXPECT_EQ(stored().last_activity_at, model::Timestamp{});
}

TEST_F(TurnBatchTest, ARefusedNotifyLeavesTheExecutionAlone) {
  const std::string call = run({event("call")}).commit.calls.started.at(0).id;
  const auto said = event("said", EventType::notify);
  const std::vector records{record(said)};
  auto batch = build_turn_batch(
      context(), {.key = key_, .records = records, .refused = {{said.id, "the store refuses it"}}});
  ASSERT_TRUE(batch);
  EXPECT_EQ(commit_now(*batch), Outcome::committed);
  EXPECT_EQ(letters().size(), 1u);
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"one call 1"}));
}

TEST_F(TurnBatchTest, AResultThatCameTwiceIsTakenOnce) {
  const std::string call = run({event("call")}).commit.calls.started.at(0).id;
  run({result_of(call), result_of(call)});
  EXPECT_EQ(texts(), (Texts{"one call 1"}));
}

TEST_F(TurnBatchTest, AResultForAResetSessionFindsNoClaim) {
  const std::string call = run({event("call"), event("b")}).commit.calls.started.at(0).id;
  ASSERT_TRUE(store_->first().sessions().reset(key_));
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"one b 1"}));
}

TEST_F(TurnBatchTest, AnExecutionGoesOnInTheVersionItBeganIn) {
  const std::string call = run({event("call"), event("b")}).commit.calls.started.at(0).id;
  import("two");
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"one call 1", "two b 2"}));
}

TEST_F(TurnBatchTest, AnInboxIsDrainedInBoundedSteps) {
  std::vector<Event> events;
  for (int i = 0; i < 100; ++i) events.push_back(event(std::to_string(i)));
  a_look_ = std::chrono::milliseconds(30);
  run(events);
  EXPECT_EQ(stored().inbox_size, 99);
  a_look_ = {};
  EXPECT_TRUE(run({}).drain_more);
  EXPECT_EQ(texts().size(), 65u);
  EXPECT_FALSE(run({}).drain_more);
  EXPECT_EQ(texts().size(), 100u);
  EXPECT_EQ(texts()[99], "one 99 100");
}

// Otherwise a session with many events would keep a worker from all others.
TEST_F(TurnBatchTest, BehindSlowTurnsTheRestWaitsForTheNextBatchInOrder) {
  a_look_ = std::chrono::milliseconds(12);
  TurnBatch batch = run({event("a"), event("b"), event("c"), event("d")});
  EXPECT_EQ(batch.after.turns, 2U);
  EXPECT_TRUE(batch.drain_more);
  EXPECT_EQ(stored().inbox_size, 2);
  batch = run({event("e")});
  EXPECT_EQ(batch.after.turns, 2U);
  batch = run({});
  EXPECT_EQ(batch.after.turns, 1U);
  EXPECT_FALSE(batch.drain_more);
  EXPECT_EQ(texts(), (Texts{"one a 1", "one b 2", "one c 3", "one d 4", "one e 5"}));
}

// A Turn that fails makes the batch build again. That time counts as well.
TEST_F(TurnBatchTest, SlowTurnsThatFailEndTheirBatchToo) {
  a_look_ = std::chrono::milliseconds(30);
  std::size_t batches = 1;
  for (TurnBatch batch = run({event("loop"), event("loop"), event("a")}); batch.drain_more;
       ++batches) {
    ASSERT_LT(batches, 10U);
    batch = run({});
  }
  EXPECT_EQ(batches, 3U);
  EXPECT_EQ(letters().size(), 2U);
  EXPECT_EQ(texts(), (Texts{"one a 1"}));
}

// The worker notes the event there, before the Turn can crash the daemon.
TEST_F(TurnBatchTest, EachEventIsTakenAsBegunBeforeItsTurn) {
  const std::vector records{record(event("a")), record(event("loop")), record(event("b"))};
  Texts begun;
  const auto begin = [&](const Beginning& beginning) {
    if (beginning.is_first) begun.emplace_back("build");
    begun.push_back(beginning.event.event_id);
    return model::Result<void>();
  };
  ASSERT_TRUE(build_turn_batch(context(), {.key = key_, .records = records, .begin = begin}));
  const auto id = [&](std::size_t at) { return records[at].record.id; };
  EXPECT_EQ(begun, (Texts{"build", id(0), id(1), "build", id(0), id(2)}));
}

TEST_F(TurnBatchTest, ATurnThatCanNotBeTakenAsBegunDoesNotRun) {
  const std::vector records{record(event("a"))};
  const auto begin = [](const Beginning&) -> model::Result<void> {
    return model::fail(model::Errc::unavailable, "the store fails");
  };
  const auto batch = build_turn_batch(context(), {.key = key_, .records = records, .begin = begin});
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code, model::Errc::unavailable);
}

TEST(TurnClock, CountsTheTimeThatTheThreadWorksAndNotThatItWaits) {
  const TurnClock clock(std::chrono::milliseconds(20));
  std::condition_variable never;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  never.wait_for(lock, std::chrono::milliseconds(40), [] { return false; });
  EXPECT_FALSE(clock.is_overdue());
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!clock.is_overdue() && std::chrono::steady_clock::now() < give_up) continue;
  EXPECT_TRUE(clock.is_overdue());
}

TEST_F(TurnBatchTest, AKeyedEventThatWasAppendedTwiceHasOneEffect) {
  Event keyed = event("a");
  keyed.claim = Claim{Claim::Kind::keyed_event, keyed.id};
  run({keyed, keyed});
  run({keyed});
  EXPECT_EQ(texts(), (Texts{"one a 1"}));
}

TEST_F(TurnBatchTest, AKeyedEventInTheInboxHasConsumedItsClaim) {
  const std::string call = run({event("call")}).commit.calls.started.at(0).id;
  Event keyed = event("a");
  keyed.claim = Claim{Claim::Kind::keyed_event, keyed.id};
  run({keyed});
  run({keyed});
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"one call 1", "one a 2"}));
}

TEST_F(TurnBatchTest, AProfileThatAnotherSessionChangedIsAConflict) {
  const TurnBatch mine = build({record(event("profile"))});
  const auto first_key = key_;
  key_ = session("plain", "other");
  run({event("profile")});
  key_ = first_key;
  EXPECT_EQ(commit_now(mine), Outcome::conflict);
  run({event("profile")});
  EXPECT_EQ(store_->first().sessions().load_with_profile(key_)->profile.data["seen"], 2);
}

TEST_F(TurnBatchTest, AWaitingClientGetsTheAnswerOfTheWholeExecution) {
  const Event message = event("call", EventType::user_message);
  auto answered = wait_for(message);
  const TurnBatch began = run({message});
  EXPECT_TRUE(began.after.answered.empty());
  const TurnBatch ended = run({result_of(began.commit.calls.started.at(0).id)});
  ASSERT_EQ(ended.after.answered.size(), 1u);
  ASSERT_TRUE(ended.after.answered[0].answer);
  EXPECT_NE(ended.after.answered[0].answer->body.find("one call 1"), std::string::npos);
  pending_replies_.finish(message.id, *ended.after.answered[0].answer);
  EXPECT_EQ(answered.get()->status, 200);
}

TEST_F(TurnBatchTest, AKeyedMessageKeepsItsAnswerAndAFailedOneSaysSo) {
  const Event message = keyed_message("a");
  run({message});
  EXPECT_EQ(kept_status(message), 200);
  const Event failing = keyed_message("loop");
  run({failing});
  EXPECT_EQ(kept_status(failing), 500);
}

}  // namespace
}  // namespace conversed::daemon
