// Events that fail, are refused or crash the daemon, and unreadable sessions.
#include <set>
#include <stdexcept>

#include "daemon/ops/logging.h"
#include "store/assets/removal.h"
#include "store/commit/usage.h"
#include "store/model/trace.h"
#include "store/text/utf8.h"
#include "tests/unit/daemon/turn_batch_world.h"

namespace conversed::daemon {
namespace {

TEST_F(TurnBatchTest, ATurnThatFailsIsADeadLetterAndItsNeighboursRun) {
  const TurnBatch batch = run({event("a"), event("loop"), event("b")});
  EXPECT_EQ(texts(), (Texts{"one a 1", "one b 2"}));
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_NE(letters()[0].reason.find("again"), std::string::npos) << letters()[0].reason;
  EXPECT_EQ(batch.commit.dead_letters.size(), 1u);
}

TEST_F(TurnBatchTest, ADeadLetterNamesTheFlowTheVersionAndTheNodeThatFailed) {
  run({event("loop")});
  ASSERT_EQ(letters().size(), 1u);
  const auto letter = letters()[0];
  EXPECT_FALSE(letter.flow.empty());
  EXPECT_EQ(letter.flow_version, 1);
  EXPECT_FALSE(letter.node.empty());
  EXPECT_NE(letter.reason.find(letter.node), std::string::npos) << letter.reason;
}

TEST_F(TurnBatchTest, AFailedTurnSaysTheEndpointsErrorText) {
  key_ = session("sorry", "s");
  run({event("loop"), event("b")});
  EXPECT_EQ(texts(), (Texts{"Sorry.", "one b 1"}));
}

// Events whose Endpoint is deleted, and stores that fail while a batch is built.
class MissingAssetsTest : public TurnBatchTest {
 protected:
  void delete_endpoint() {
    const store::FlowReader reader{
        .standing = [](const auto&, const auto&) { return std::vector<std::string>(); },
        .entered = [](const auto&) { return std::vector<std::string>(); }};
    const auto found = store_->removals().endpoint(key_.endpoint_id, reader, clock_.now());
    ASSERT_TRUE(found) << found.error().message;
    const auto removed =
        store_->committer().write_and_wait([&](store::Writer& writer) -> model::Result<void> {
          const auto usages = store::Removals::remove(writer, *found);
          if (!usages) return model::fail(usages.error());
          EXPECT_TRUE(usages->empty());
          store_->assets().grow(writer);
          return {};
        });
    ASSERT_TRUE(removed) << removed.error().message;
  }

  // From now on the table can't be read.
  void hide(const std::string& table) { write("ALTER TABLE " + table + " RENAME TO hidden"); }

  void expect_unavailable(const TurnBatchContext& with, const TurnBatchInput& input) {
    const auto batch = build_turn_batch(with, input);
    ASSERT_FALSE(batch);
    EXPECT_EQ(batch.error().code, model::Errc::unavailable) << batch.error().message;
  }
};

TEST_F(MissingAssetsTest, AnEventForADeletedEndpointIsADeadLetter) {
  delete_endpoint();
  run({event("a")});
  EXPECT_EQ(texts(), Texts());
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_NE(letters()[0].reason.find("Endpoint is gone"), std::string::npos) << letters()[0].reason;
}

TEST_F(MissingAssetsTest, AnInjectForADeletedEndpointIsCountedForTheOrganisationThatAcceptedIt) {
  delete_endpoint();
  Event made = event("a");
  made.origin.organisation_id = organisation_;
  const TurnBatch batch = run({made, event("of no organisation")});
  ASSERT_EQ(batch.commit.quota.size(), 1U);
  EXPECT_EQ(batch.commit.quota[0].organisation_id, organisation_);
  EXPECT_EQ(batch.commit.quota[0].counter, store::injects_counter);
  EXPECT_EQ(letters().size(), 2U);
}

TEST_F(MissingAssetsTest, AnInjectThatWaitsIsCountedOnceTheStoreCanBeRead) {
  run({event("call")});
  const std::vector records{record(event("a"))};
  hide("endpoints");
  expect_unavailable(context(), {.key = key_, .records = records});
  write("ALTER TABLE hidden RENAME TO endpoints");
  const TurnBatch batch = build(records);
  EXPECT_EQ(batch.commit.inbox.added.size(), 1U);
  EXPECT_EQ(batch.commit.quota.size(), 1U);
}

TEST_F(MissingAssetsTest, AScheduledMessageWaitsUntilItsEndpointCanBeRead) {
  run({event("call")});
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = key_;
  schedule.text = "news";
  schedule.timezone = "UTC";
  schedule.due_at = schedule.created_at = clock_.now();
  ASSERT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
  Event due = event("news", EventType::user_message);  // of this type, no use is counted
  due.claim = Claim{Claim::Kind::schedule, schedule.claim()};
  const std::vector records{record(due)};
  hide("endpoints");
  expect_unavailable(context(), {.key = key_, .records = records});
}

TEST_F(MissingAssetsTest, AnEventThatFailedWaitsUntilItsErrorFlowIsKnown) {
  key_.endpoint_id = "deleted";
  const std::vector records{record(event("a", EventType::notify))};
  int builds = 0;
  const auto known = [&]() -> std::optional<store::Sessions::Loaded> {
    if (++builds == 2) hide("endpoints");
    return std::nullopt;
  };
  expect_unavailable(context(), {.key = key_, .records = records, .known_session = known});
  EXPECT_EQ(builds, 2);
}

TEST_F(MissingAssetsTest, AFailedTurnWaitsUntilItsRampsAreKnown) {
  const std::vector records{record(event("loop", EventType::user_message))};
  int builds = 0;
  const auto known = [&]() -> std::optional<store::Sessions::Loaded> {
    if (++builds == 2) hide("tokens");
    return std::nullopt;
  };
  expect_unavailable(context(), {.key = key_, .records = records, .known_session = known});
  EXPECT_EQ(builds, 2);
}

TEST_F(TurnBatchTest, AnExceptionInATurnIsLoggedAndItsTimeCounts) {
  std::vector<std::string> lines;
  log::set_sink([&](std::string_view line) { lines.emplace_back(line); });
  auto with = context();
  int looks = 0;
  with.stopwatch = [&] {
    if (++looks == 2) throw std::runtime_error("a defect");
    return stopwatch_ += std::chrono::milliseconds(10);
  };
  const std::vector records{record(event("secret text")), record(event("b"))};
  const auto batch = build_turn_batch(with, {.key = key_, .records = records});
  log::set_sink({});
  ASSERT_TRUE(batch) << batch.error().message;
  ASSERT_EQ(batch->commit.dead_letters.size(), 1U);
  EXPECT_EQ(batch->commit.dead_letters[0].flow, "Count");
  EXPECT_EQ(batch->commit.dead_letters[0].reason, "the Turn ended with an internal error");
  EXPECT_EQ(batch->commit.outputs.size(), 1U);
  ASSERT_EQ(lines.size(), 1U);
  for (const char* part : {"\"error\"", "Count", "a defect"}) {
    EXPECT_NE(lines[0].find(part), std::string::npos) << lines[0];
  }
  EXPECT_EQ(lines[0].find("secret"), std::string::npos) << lines[0];
}

TEST_F(TurnBatchTest, ATurnThatThrowsUsesTheSliceOfItsBatch) {
  auto with = context();
  int looks = 0;
  with.stopwatch = [&] {
    if (++looks == 2) throw std::runtime_error("a defect");
    return stopwatch_ += std::chrono::milliseconds(30);
  };
  const std::vector records{record(event("a")), record(event("b"))};
  const auto batch = build_turn_batch(with, {.key = key_, .records = records});
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_EQ(batch->commit.dead_letters.size(), 1U);
  EXPECT_EQ(batch->commit.inbox.added.size(), 1U) << "no Turn starts after a slow one";
}

TEST_F(TurnBatchTest, ARecordThatCannotBeReadIsADeadLetter) {
  auto bad = record(event("a"));
  bad.record.value = "{";
  EXPECT_EQ(commit_now(build({bad, record(event("b"))})), Outcome::committed);
  EXPECT_EQ(texts(), (Texts{"one b 1"}));
  EXPECT_EQ(letters().size(), 1u);
}

TEST_F(TurnBatchTest, ARecordWhoseTraceIsNoneRunsUnderANewOne) {
  for (const std::string trace : {"", "no trace", "\xff", "a\r\nX: y"}) {
    auto foreign = record(event("a" + std::to_string(trace.size())));
    foreign.record.trace_id = trace;
    EXPECT_EQ(commit_now(build({foreign})), Outcome::committed);
  }
  EXPECT_TRUE(letters().empty());
  const auto said = store_->first().outbox().outputs(key_, 0, 10);
  ASSERT_EQ(said->size(), 4U);
  for (const auto& output : *said) EXPECT_TRUE(model::is_trace_id(output.trace_id));
}

TEST_F(TurnBatchTest, ARecordThatNoStoreCanHoldIsADeadLetterOfText) {
  auto names = record(event("a"));
  names.record.id = "\xff" + std::string(500, 'i');
  names.record.trace_id = "\xc0\x80";
  auto value = record(event("b"));
  value.record.value = "{\"v\":1,\"text\":\"\xed\xa0\x80\"}";
  auto type = record(event("c"));
  type.record.type = "\xfe";
  EXPECT_EQ(commit_now(build({names, value, type, record(event("d"))})), Outcome::committed);
  EXPECT_EQ(texts(), (Texts{"one d 1"}));
  const auto all = letters();
  ASSERT_EQ(all.size(), 3u);
  for (const auto& letter : all) {
    for (const auto& text : {letter.event.event_id, letter.event.type, letter.event.trace_id,
                             letter.event.value, letter.reason}) {
      EXPECT_TRUE(text::is_utf8(text)) << letter.reason;
    }
    EXPECT_LE(letter.event.event_id.size(), 64u);
    EXPECT_LE(letter.event.trace_id.size(), 64u);
  }
}

TEST(SessionOf, AKeyThatNoStoreCanHoldHasItsOwnSession) {
  const model::SessionKey good{"project", "endpoint", "user", "session"};
  EXPECT_EQ(session_of(good.encode()), good);
  std::set<std::string> sessions;
  const std::vector<std::string> bad{"no session",
                                     std::string(4'000, 'k'),
                                     std::string(4'001, 'k'),
                                     "p\x1f\xff\x1f"
                                     "e\x1fs",
                                     "p\x1f\xfe\x1f"
                                     "e\x1fs",
                                     "p\x1fuser\x1f\x1fs",
                                     "p\x1fu\x1f"
                                     "e\x1f" +
                                         std::string(513, 's')};
  for (const auto& key : bad) {
    const auto session = session_of(key);
    EXPECT_EQ(session.endpoint_id, "");
    const auto stored = session.encode();
    EXPECT_TRUE(text::is_utf8(stored));
    EXPECT_LT(stored.size(), 1'000u) << "an index entry holds at most 2,704 bytes";
    EXPECT_EQ(model::SessionKey::decode(stored), session);
    sessions.insert(stored);
  }
  EXPECT_EQ(sessions.size(), bad.size());
}

TEST_F(TurnBatchTest, AForeignRecordFromTheFutureIsADeadLetterAndReadable) {
  auto ahead = record(event("a"));
  const auto at = model::to_unix_ms(clock_.now() + std::chrono::hours(25));
  ahead.record.value = R"({"v":1,"text":"a","at":)" + std::to_string(at) + "}";
  EXPECT_EQ(commit_now(build({ahead, record(event("b"))})), Outcome::committed);
  EXPECT_EQ(texts(), (Texts{"one b 1"}));
  const auto all = letters();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NE(all[0].reason.find("member at"), std::string::npos) << all[0].reason;
  const auto& parts = all[0].event;
  EXPECT_TRUE(
      model::decode_event(key_.encode(), parts.event_id, parts.type, parts.trace_id, parts.value));
}

TEST_F(TurnBatchTest, AnEventAcceptedByAClockAheadRunsAsOfNow) {
  std::vector<Event> all;
  for (const auto by : {std::chrono::hours(1), std::chrono::hours(24 * 366)}) {
    for (const auto type : {EventType::inject, EventType::notify, EventType::user_message}) {
      all.push_back(event("ahead", type));
      all.back().accepted_at += by;
    }
  }
  run(all);
  EXPECT_TRUE(letters().empty());
  EXPECT_EQ(texts().size(), all.size());
  EXPECT_EQ(store_->first().sessions().load(key_)->value().last_activity_at, clock_.now())
      << "a later time would delay the expiry";
}

TEST_F(TurnBatchTest, AReplayedDeadLetterRunsOnce) {
  run({event("loop")});
  const auto letter = letters().at(0);
  Event replay = event("mended");
  replay.claim = Claim{Claim::Kind::dead_letter, letter.id};
  run({replay});
  replay.id = model::new_id();
  run({replay});
  EXPECT_EQ(texts(), (Texts{"one mended 1"}));
  EXPECT_EQ(letters().at(0).state, store::DeadLetterState::replayed);
}

TEST_F(TurnBatchTest, TwoReplaysOfOneDeadLetterInOneRunHaveOneEffect) {
  run({event("loop")});
  Event replay = event("mended");
  replay.claim = Claim{Claim::Kind::dead_letter, letters().at(0).id};
  Event again = replay;
  again.id = model::new_id();
  run({replay, again});
  EXPECT_EQ(texts(), (Texts{"one mended 1"}));
}

TEST_F(TurnBatchTest, ABatchThatRunsAloneStartsOneEvent) {
  a_look_ = std::chrono::milliseconds(30);
  run({event("slow"), event("a"), event("b")});
  a_look_ = {};
  const TurnBatch first = run({event("c")}, {.alone = true});
  EXPECT_EQ(first.after.turns, 1u);
  EXPECT_TRUE(first.drain_more);
  run({}, {.alone = true});
  run({}, {.alone = true});
  EXPECT_EQ(texts(), (Texts{"one slow 1", "one a 2", "one b 3", "one c 4"}));
}

TEST_F(TurnBatchTest, AnEventThatWasInHandInACrashRunsAloneAndItsCommitForgetsIt) {
  const std::vector records{record(event("a")), record(event("b")), record(event("c"))};
  const std::vector<store::InHand> left{{records[1].record.id, 0, 1}};
  const std::vector<model::Position> committed{{1, 0, 0}};
  ASSERT_TRUE(store_->first().attempts().attribute(1, left, committed));
  Recovery recovery(*store_);
  const std::vector<queue::PartitionRange> ranges{{0, 1, 0, 3, 0}};
  ASSERT_TRUE(recovery.begin(nullptr, ranges));
  recovery_ = &recovery;
  const TurnBatch beside = build(records);
  EXPECT_TRUE(beside.wants_alone);
  EXPECT_FALSE(beside.changes);
  EXPECT_EQ(beside.after.turns, 0U);
  // Events before it in its session run alone, too.
  TurnBatch alone = build(records, {.alone = true});
  EXPECT_EQ(alone.after.turns, 1U);
  EXPECT_TRUE(alone.commit.attempts_settled.empty());
  ASSERT_EQ(commit_now(alone), Outcome::committed);
  alone = build({}, {.alone = true});
  EXPECT_EQ(alone.commit.attempts_settled, std::vector{records[1].record.id});
  ASSERT_EQ(commit_now(alone), Outcome::committed);
  recovery.settled(alone.commit.attempts_settled);
  EXPECT_TRUE(store_->first().attempts().counted()->empty());
  run({});
  EXPECT_EQ(texts(), (Texts{"one a 1", "one b 2", "one c 3"}));
}

TEST_F(TurnBatchTest, AnEventInHandInThreeCrashesIsADeadLetterAndNotBegun) {
  const std::vector records{record(event("a"))};
  const std::vector<store::InHand> left{{records[0].record.id, 0, 0}};
  const std::vector<model::Position> committed{{1, 0, 0}};
  for (std::int64_t run = 1; run <= 3; ++run) {
    ASSERT_TRUE(store_->first().attempts().attribute(run, left, committed));
  }
  Recovery recovery(*store_);
  const std::vector<queue::PartitionRange> ranges{{0, 1, 0, 1, 0}};
  ASSERT_TRUE(recovery.begin(nullptr, ranges));
  recovery_ = &recovery;
  EXPECT_TRUE(build(records).wants_alone);
  const TurnBatch batch = build(records, {.alone = true});
  EXPECT_EQ(batch.after.turns, 0U);
  EXPECT_EQ(commit_now(batch), Outcome::committed);
  EXPECT_TRUE(texts().empty());
  ASSERT_EQ(letters().size(), 1U);
  EXPECT_TRUE(store_->first().attempts().counted()->empty());
}

TEST_F(TurnBatchTest, ARefusedEventThatHasToWaitIsSettledAndChangesNothingElse) {
  const std::string call = run({event("call")}).commit.calls.started.at(0).id;
  const Event refused = keyed_message("a");
  auto told = wait_for(refused);
  const TurnBatch batch = run_refused({refused});
  ASSERT_EQ(batch.after.answered.size(), 1u);
  EXPECT_FALSE(batch.after.answered[0].answer);
  pending_replies_.finish(refused.id, model::fail(batch.after.answered[0].answer.error()));
  EXPECT_FALSE(told.get());
  EXPECT_EQ(kept_status(refused), 500);
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_TRUE(*store_->first().answers().claimed(refused.id));
  // A second append has no effect, and the execution that the event waits for goes on.
  run({refused});
  EXPECT_EQ(letters().size(), 1u);
  EXPECT_TRUE(stored().busy());
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"one call 1"}));
}

TEST_F(TurnBatchTest, ARefusedEventThatHasToWaitSaysTheErrorText) {
  key_ = session("sorry", "s");
  const std::string call = run({event("call")}).commit.calls.started.at(0).id;
  run_refused({keyed_message("a")});
  run({result_of(call)});
  EXPECT_EQ(texts(), (Texts{"Sorry.", "one call 1"}));
}

TEST_F(TurnBatchTest, ARefusedResultEndsTheExecutionThatWaitedForIt) {
  const std::string call = run({event("call"), event("b")}).commit.calls.started.at(0).id;
  run_refused({result_of(call)});
  EXPECT_EQ(letters().size(), 1u);
  EXPECT_FALSE(store_->first().calls().find(call)->has_value());
  EXPECT_EQ(texts(), (Texts{"one b 2"}));
}

TEST_F(TurnBatchTest, AnExecutionThatCannotBeReadLeavesNothingBehind) {
  key_ = session("hooked", "s");
  const Event message = event("tell", EventType::user_message);
  auto told = wait_for(message);
  const std::string call = run({message}).commit.calls.started.at(0).id;
  write("UPDATE sessions SET execution = '{'");
  run({event("a")});
  ASSERT_EQ(letters().size(), 1u);
  EXPECT_FALSE(store_->first().calls().find(call)->has_value());
  run({result_of(call), event("b")});
  EXPECT_EQ(letters().size(), 1u);
  EXPECT_EQ(texts(), (Texts{"looking", "Sorry.", "one b 2"}));
}

TEST_F(TurnBatchTest, AResultForAnExecutionThatCannotBeReadIsADeadLetter) {
  const std::string call = run({event("call")}).commit.calls.started.at(0).id;
  write("UPDATE sessions SET execution = '{'");
  run({result_of(call), result_of(call)});
  EXPECT_EQ(letters().size(), 1u);
  EXPECT_FALSE(store_->first().calls().find(call)->has_value());
  EXPECT_FALSE(stored().busy());
}

TEST_F(TurnBatchTest, AnUnreadableContextEndsItsExecution) {
  const Event message = keyed_message("call");
  const std::string call = run({message}).commit.calls.started.at(0).id;
  write("UPDATE sessions SET context = '{'");
  run({event("a")});
  EXPECT_EQ(letters().size(), 1u);
  EXPECT_EQ(kept_status(message), 500);
  EXPECT_FALSE(store_->first().calls().find(call)->has_value());
  EXPECT_FALSE(stored().busy());
}

TEST_F(TurnBatchTest, ARecordWithoutEffectsOverwritesNoUnreadableData) {
  run({event("a")});
  write("UPDATE sessions SET context = '{'");
  EXPECT_FALSE(run({result_of("gone")}).changes);
  run({event("b")});
  EXPECT_EQ(letters().size(), 1u);
}

}  // namespace
}  // namespace conversed::daemon
