#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/live/pending_replies.h"
#include "daemon/ops/metrics.h"
#include "daemon/telemetry/spans.h"
#include "flows/turn/turn.h"
#include "queue/log.h"
#include "store/commit/committer.h"
#include "store/conversation/attempts.h"
#include "store/conversation/sessions.h"
#include "store/model/clock.h"

namespace conversed::api {
class AssetsCache;
}
namespace conversed::store {
class RecentSessions;
class Store;
}  // namespace conversed::store

namespace conversed::daemon {

class Recovery;
class TimerClock;

// The parts that build batches. All must outlive the last `build_turn_batch`.
struct TurnBatchContext {
  store::Store& store;
  api::AssetsCache& assets;
  api::PendingReplies& pending_replies;
  const model::Clock& clock;
  TimerClock* timer_clock = nullptr;  // the clock of waits; null: `clock`
  flows::Limits limits;
  std::size_t max_drained = 64;  // events of the stored inbox that one batch runs
  // Once its Turns have taken this long, a batch starts no further Turn. Its other events wait in
  // the inbox until the lane's next turn.
  std::chrono::steady_clock::duration slice = std::chrono::milliseconds(20);
  std::function<std::chrono::steady_clock::time_point()> stopwatch = std::chrono::steady_clock::now;
  Recovery* recovery = nullptr;  // knows the events that run alone after a crash; null: none
  std::int32_t partitions = 1;   // of the log
  bool keeps_receipts = true;
  bool reads_ahead = false;  // the store is across a network: a worker reads many sessions at once
  store::RecentSessions* recent = nullptr;  // null: each batch reads its session
  Spans* spans = nullptr;                   // null: no spans are made
};

// The event whose Turn is about to start.
struct Beginning {
  store::InHand event;
  std::optional<int> crashes{};  // crashes with the event in hand; none: it need not run alone
  bool is_first = true;          // false: an earlier build of the batch was discarded
};

struct TurnBatchInput {
  model::SessionKey key;
  std::span<const queue::LogRecord> records{};  // of this session, in order
  bool alone = false;           // no other batch is in hand; starts one event at most
  bool one_start = false;       // start one event at most; implied by `alone`
  bool after_conflict = false;  // another commit has changed the session's data, such as a cut
  // Events that the store refuses, even in the inbox: event id → reason.
  std::map<std::string, std::string> refused{};
  // Called right before each Turn, to make a crash in the Turn known to the next start. An error
  // ends the build. Null: no Turn is noted.
  std::function<model::Result<void>(const Beginning&)> begin{};
  // The session in memory: it was read ahead, or its last Turn left it. It may be out of date.
  // None, or null: the build reads the store. A second call returns none.
  std::function<std::optional<store::Sessions::Loaded>()> known_session{};
};

// The worker's tasks once the commit of a TurnBatch is durable, in addition to the SessionCommit's
// own effects.
struct AfterCommit {
  struct Answered {
    std::string input_id;
    model::Result<api::Answer> answer;
  };

  struct Processed {
    WaitCause cause = WaitCause::log;
    std::chrono::milliseconds waited{};
    std::chrono::steady_clock::duration took{};
    std::string flow_id;  // empty: no Flow ran
  };

  std::vector<Answered> answered;          // for this daemon's waiting clients
  std::vector<model::Schedule> schedules;  // with their next times
  std::optional<std::int64_t> inbox_size;  // none: it has not changed
  std::vector<std::string> log_lines;      // written by Flows for the operator
  std::vector<Processed> processed;        // the events that did not go to the inbox
  std::vector<Span> spans;                 // of the events that were processed
  std::size_t turns = 0;
  std::size_t follow_ups_sent = 0;
  std::size_t follow_ups_dropped = 0;  // too late, or too many
};

// Consecutive Turns of one session, run in memory.
struct TurnBatch {
  store::SessionCommit commit;
  model::Profile profile;  // the data as the Turns left it, with the version that they read
  bool reads_all = true;   // false: a part of the stored session or profile is unreadable
  AfterCommit after;
  // The Deliverer has been told of all outputs before this batch, or the session is new.
  bool outputs_are_known = false;
  bool changes = false;       // false: there is no need to commit
  bool wants_alone = false;   // the batch is not built: one of its events has to run alone
  bool drain_more = false;    // the inbox holds events that can run now
  std::string first_started;  // id of the first event that was started; empty: none
};

// The session of a lane. A record whose key names no session, or a session that the store can't
// keep, comes from a foreign producer. Its dead letter needs a session that keeps the position. So
// it gets a session that no Endpoint can have. Each such key has its own session, since positions
// of different partitions do not compare.
[[nodiscard]] model::SessionKey session_of(const std::string& lane_key);

// Takes records in order and decides for each: it has had its effects (dropped), its claim is gone
// (dropped), the session is busy (inbox), it can't be processed (dead letter), or it runs as a Turn
// on the state after the previous Turn. The inbox is drained before new records.
//
// Building reads the store and has no side effects but those of `TurnBatchInput::begin`. Errors:
// `unavailable` and `timed_out` (the store fails: try again later; nothing is lost), `internal` (a
// row that the batch needs can't be read, such as the claim of an event: the run waits until it is
// repaired), `conflict` (a position of a past epoch or another partition: consumption has to stop),
// and those of `begin`. Thread-safe; one batch of a session at a time.
//
// Invariants:
// - A Turn that fails has no effects but its dead letter, and the Endpoint's `errorText` or the
//   Turn of its Flow for errors. Turns are pure, so the batch is built again from the store without
//   it.
//   Kept by: TurnBatchTest.ATurnThatFailsIsADeadLetterAndItsNeighboursRun.
// - A dead letter settles its event: it consumes the claim, answers the client and stores the
//   keyed answer. Kept by: TurnBatchTest.AKeyedMessageKeepsItsAnswerAndAFailedOneSaysSo.
// - The first dead letter of a damaged session withdraws the calls and timers of the session.
//   Nothing else overwrites unreadable data.
//   Kept by: TurnBatchTest.AnExecutionThatCannotBeReadLeavesNothingBehind,
//   TurnBatchTest.ARecordWithoutEffectsOverwritesNoUnreadableData.
// - A claim is consumed in the transaction of the event's effects, or of its move to the inbox.
//   Kept by: TurnBatchTest.AKeyedEventInTheInboxHasConsumedItsClaim.
// - A batch on a session from memory that has no changes, or in which a Turn failed, is built again
//   from the store: no commit compares its versions.
//   Kept by: RecentTurnsTest.AResetSessionRunsItsInbox,
//   RecentTurnsTest.ATurnThatFailsOnAnOldSessionRunsOnTheNewOne.
// - A conflict (version, profile, claim, cut) discards the whole batch.
//   Kept by: TurnBatchTest.ABatchThatLostIsBuiltAgainFromWhatIsStored.
// - Once its Turns have taken `slice`, a batch starts no further Turn. Its other events wait in the
//   inbox. Kept by: TurnBatchTest.BehindSlowTurnsTheRestWaitsForTheNextBatchInOrder.
// - An event that this daemon accepted while its clock was ahead runs as of now. Such a record of
//   another program is a dead letter.
//   Kept by: TurnBatchTest.AnEventAcceptedByAClockAheadRunsAsOfNow,
//   TurnBatchTest.AForeignRecordFromTheFutureIsADeadLetterAndReadable.
// - The tokens that a model reports are counted with the event that brings them, even if its Turn
//   fails. Kept by: TurnBatchTest.ModelTokensAreCountedEvenIfTheTurnFails.
[[nodiscard]] model::Result<TurnBatch> build_turn_batch(const TurnBatchContext& context,
                                                        const TurnBatchInput& input);

// Whether the store has failed, so that a later try may help.
inline bool is_store_failure(const model::Error& error) {
  return error.code == model::Errc::unavailable || error.code == model::Errc::timed_out;
}

// For an asset that can't be read. A failure of the store is an error. After any other error the
// batch goes on without the asset.
[[nodiscard]] inline model::Result<bool> none_unless_store_failed(const model::Error& error) {
  if (is_store_failure(error)) return model::fail(error);
  return false;
}

}  // namespace conversed::daemon
