#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::store {

// The history of one event that begins an execution (or a notify), with all that followed from
// it.
struct Receipt {
  struct Row {
    std::int64_t n = 0;
    model::Timestamp written_at{};
    nlohmann::json body{};
  };
  struct Output {
    std::string id;
    std::int64_t seq = 0;
    model::Timestamp created_at{};
    bool pending = false;       // still to be delivered
    bool is_behind = false;     // earlier outputs of the session are delivered first
    model::Timestamp due_at{};  // of the session's oldest delivery; the epoch: no try has failed
  };

  std::string input_id;  // the event's
  std::string trace_id;
  std::string previous;  // the session's event with a receipt before this one; empty: there is none
  model::SessionKey session;
  std::vector<Row> rows;  // the first step, and the later ones in the order of their times
  std::vector<Output> outputs;
  // The last delivery try of the events before this one; the epoch: there was none.
  model::Timestamp delivered_before{};
  // As of now:
  bool runs = false;            // its execution waits for a call or timer
  bool waits_in_inbox = false;  // for its session
  std::int64_t others = 0;      // events that wait until its execution ends
};

// Receipts of events: one step for each Turn, each wait in an inbox, and each try of a call or of a
// delivery. Thread-safe; blocks on the disk. Errors: `unavailable`, `internal`.
//
// A step is written in the transaction of the change that it describes, so a receipt never shows a
// step that did not become durable. It is written once and read only when asked. It has some
// hundred bytes (store/model/receipt_text.h), and within bounds the data of an input and the answer
// of a call, for replays (daemon/turns/batch_receipts.cc). It does not repeat the contents of other
// tables, such as outputs and dead letters. First steps are compressed together
// (store/commit/receipt_blocks.h).
//
// A receipt is found by the event's id. Ids begin with the time, so receipts are appended, several
// to a row (store/commit/receipt_blocks.h). Turns that continue an execution, calls, and the other
// tries of deliveries add to the later steps of their input, a row of the table `later_steps`, if
// the receipt exists. So an erased or expired receipt does not come back.
//
// A session's receipts form a chain: sessions.last_receipt names the newest event, and the first
// step of each event the one before. The chain is in the order of the log, hence of the ids, so
// retention cuts it off at its end. Erasure, export and the session's history walk along it, since
// an index by session would cost every Turn.
// Kept by: ReceiptsTest.RetentionCutsChainsOffAtTheirEnd,
// UserDataTest.ErasedUserLeavesNoTraceInTheFiles.
class Receipts : Rows {
 public:
  using Rows::Rows;

  // The events of the project with this id, or the id of one of their outputs, calls or follow-ups;
  // else with this trace id, else with this hash of an Idempotency-Key (model::Origin::key). Oldest
  // first, at most `limit`.
  [[nodiscard]] model::Result<std::vector<std::string>> find(const std::string& project_id,
                                                             const std::string& text,
                                                             const std::string& key,
                                                             std::size_t limit) const;

  // The receipt of an event. `not_found` if there is none. Reads at most 1,000 outputs, and as many
  // steps as `most_later_characters` has.
  [[nodiscard]] model::Result<Receipt> get(const std::string& input_id) const;

  // For each of the project's `sessions` newest sessions: the steps of its newest event with a
  // receipt, in their order, without plain deliveries. Returns at most `limit` steps, from receipts
  // with together at most 2 MiB.
  struct NewestRow {
    std::string input_id;
    nlohmann::json body{};
  };
  [[nodiscard]] model::Result<std::vector<NewestRow>> newest(const std::string& project_id,
                                                             std::size_t sessions,
                                                             std::size_t limit) const;

  // Deletes receipts, and rows of plain deliveries, of events that were accepted before `before`:
  // about `limit` of each. Returns the higher number. Below `limit`: there are no more, or few.
  [[nodiscard]] model::Result<std::int64_t> prune(model::Timestamp before, std::size_t limit);
};

// The events of a session's newest receipts, newest first. Inside a transaction; throws SqlError.
[[nodiscard]] std::vector<std::string> chain_of(
    Connection& connection, std::int64_t session,
    std::size_t limit = std::numeric_limits<std::size_t>::max());

}  // namespace conversed::store
