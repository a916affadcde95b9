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
#include "flows/turn/turn.h"
#include "queue/log.h"
#include "store/commit/committer.h"
#include "store/conversation/attempts.h"
#include "store/model/clock.h"

namespace conversed::api {
class AssetsCache;
}
namespace conversed::store {
class Store;
}

namespace conversed::daemon {

class Recovery;
class TimerClock;

// What batches are built from. Everything must outlive the last `build_turn_batch`.
struct TurnBatchContext {
  store::Store& store;
  api::AssetsCache& assets;
  api::PendingReplies& pending_replies;
  const model::Clock& clock;
  TimerClock* timer_clock = nullptr;  // what waits for a while is due by it; null: by `clock`
  flows::Limits limits;
  std::size_t max_drained = 64;  // events that one batch runs of what was in the inbox before it
  // A batch whose Turns have taken longer starts no more of them: the rest waits in the inbox, and
  // its lane for its turn.
  std::chrono::steady_clock::duration slice = std::chrono::milliseconds(20);
  std::function<std::chrono::steady_clock::time_point()> stopwatch = std::chrono::steady_clock::now;
  Recovery* recovery = nullptr;  // which events run alone since a crash; null: none
  std::int32_t partitions = 1;   // of the log
};

// The event whose Turn is about to start.
struct Beginning {
  store::InHand event;
  std::optional<int> crashes{};  // counted with it in hand; none: it need not run alone
  bool is_first = true;          // of this build: a build before it was discarded
};

struct TurnBatchInput {
  model::SessionKey key;
  std::span<const queue::LogRecord> records{};  // of this session, in order
  bool alone = false;                           // nothing else is in hand; starts one event at most
  bool one_start = false;                       // start one event at most; implied by `alone`
  bool after_conflict = false;  // something has changed that was not read: maybe an input is cut
  // What the store does not take, not even into the inbox: event id → why.
  std::map<std::string, std::string> refused{};
  // Called right before each Turn. It makes a crash in the Turn known to the next start; an error
  // ends the build. Null: no Turn is noted.
  std::function<model::Result<void>(const Beginning&)> begin{};
};

// What the worker does once the commit of a TurnBatch is durable, besides what the SessionCommit
// itself says.
struct AfterCommit {
  struct Answered {
    std::string input_id;
    model::Result<api::Answer> answer;
  };

  std::vector<Answered> answered;          // for this daemon's waiting clients
  std::vector<model::Schedule> schedules;  // with their next time
  std::optional<std::int64_t> inbox_size;  // set if it has changed
  std::vector<std::string> log_lines;      // written by Flows for the operator
  std::size_t turns = 0;
  std::size_t follow_ups_sent = 0;
  std::size_t follow_ups_dropped = 0;  // too late, or too many
};

// Consecutive Turns of one session, run in memory.
struct TurnBatch {
  store::SessionCommit commit;
  AfterCommit after;
  bool changes = false;       // false: there is nothing to commit
  bool wants_alone = false;   // nothing is built: an event of it has to run alone
  bool drain_more = false;    // the inbox holds events that can run now
  std::string first_started;  // id of the first event that was started; empty: none
};

// The session of a lane. A record whose key is no session's, or one that the store can't keep, can
// only come from a foreign producer. Its dead letter needs a session to keep the position, so it
// gets one that no Endpoint can have; of each such key its own, as positions of different
// partitions do not compare.
[[nodiscard]] model::SessionKey session_of(const std::string& lane_key);

// Takes records in order and decides for each: it has had its effects (dropped), its claim is gone
// (dropped), the session is busy (inbox), it can't be processed (dead letter), or it runs as a Turn
// on the state that the one before it left. An inbox that can be drained goes before new records.
//
// Building reads the store and has no side effects but those of `TurnBatchInput::begin`. Errors:
// `unavailable` (try again later; nothing is lost), `conflict` (a position of a past epoch or
// another partition: consumption has to stop), and those of `begin`. Thread-safe; one batch of a
// session at a time.
//
// Invariants:
// - A Turn that fails has no effects but its dead letter and the Endpoint's `errorText`. Turns are
//   pure, so the batch is built again from the store without it.
//   Kept by: TurnBatchTest.ATurnThatFailsIsADeadLetterAndItsNeighboursRun.
// - A dead letter settles its event: it consumes the claim, answers the client and stores the
//   keyed answer. Kept by: TurnBatchTest.AKeyedMessageKeepsItsAnswerAndAFailedOneSaysSo.
// - The first dead letter of a damaged session withdraws what the session waited for. Nothing else
//   overwrites data that can't be read.
//   Kept by: TurnBatchTest.AnExecutionThatCannotBeReadLeavesNothingBehind,
//   TurnBatchTest.ARecordWithoutEffectsOverwritesNoUnreadableData.
// - A claim is consumed in the transaction of the event's effects, or of its move to the inbox.
//   Kept by: TurnBatchTest.AKeyedEventInTheInboxHasConsumedItsClaim.
// - A conflict (version, profile, claim, cut) discards the whole batch.
//   Kept by: TurnBatchTest.ABatchThatLostIsBuiltAgainFromWhatIsStored.
// - Once its Turns have taken `slice`, a batch starts no more of them; the rest waits in the inbox.
//   Kept by: TurnBatchTest.BehindSlowTurnsTheRestWaitsForTheNextBatchInOrder.
// - An event that this daemon accepted by a clock that was ahead runs as of now. Such a record of
//   another program is a dead letter.
//   Kept by: TurnBatchTest.AnEventAcceptedByAClockAheadRunsAsOfNow,
//   TurnBatchTest.AForeignRecordFromTheFutureIsADeadLetterAndReadable.
// - The tokens that a model reports are counted with the event that brings them, even if its Turn
//   fails. Kept by: TurnBatchTest.ModelTokensAreCountedEvenIfTheTurnFails.
[[nodiscard]] model::Result<TurnBatch> build_turn_batch(const TurnBatchContext& context,
                                                        const TurnBatchInput& input);

// Whether the fault is the store's, and trying again later helps.
inline bool is_store_failure(const model::Error& error) {
  return error.code == model::Errc::unavailable || error.code == model::Errc::timed_out;
}

}  // namespace conversed::daemon
