#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/turns/batch_draft.h"
#include "store/commit/committer.h"
#include "store/model/event.h"
#include "store/model/receipt_text.h"

namespace conversed::daemon {

// Where a batch found an event.
struct Sighting {
  std::optional<model::Position> at{};  // in the log; none: its receipt is begun in the store
  // The receipt that the batch has linked to the session already, since the event has waited in the
  // batch's inbox.
  const store::NewReceiptRow* begun = nullptr;
  bool in_recovery = false;  // it was in hand in a crash, and runs alone
};

// Makes the row of an event's receipt: what the batch did with the event, and why the event has
// waited. Constructed before the event is processed. The row belongs to the input of the execution
// that the event begins or continues. The session's receipts are linked in the order of the log, so
// that their ids ascend. Events of other programs have no receipts: their ids may repeat. One
// thread.
//
// The member `recorded` of a row has the further data for a replay of the session
// (flows/tools/replay.h): the whole input, the answers of calls, and the state that a conversation
// finds at its begin. Each part is bounded: of a larger one only the number of bytes is kept. Of a
// call's request only the mark is kept. Kept by: TurnReceipts.KeepWhatAReplayNeeds,
// TurnReceipts.LeaveOutWhatIsTooLargeAndSaySo.
class ReceiptNote {
 public:
  // Both must outlive it.
  ReceiptNote(BatchDraft& draft, const model::Event& event, const Sighting& sighting);

  // The row of an event that waits in the inbox from now on. None: the event has no receipt.
  [[nodiscard]] std::optional<store::NewReceiptRow> waits();
  // Adds the row of an event that was processed, if it has a receipt, and its spans.
  void add_processed();

 private:
  [[nodiscard]] std::optional<store::NewReceiptRow> begin_row();
  void add_acceptance(model::ReceiptText& step) const;
  void look_at_beginning();
  void add_recorded(model::ReceiptText& row, const model::PendingCall* call) const;
  [[nodiscard]] WaitCause wait_cause() const;
  void add_spans();
  void add_runs(const std::string& input_id);

  BatchDraft& draft_;
  const model::Event& event_;
  const Sighting sighting_;
  std::string input_id_;      // empty: no receipt
  std::string begun_by_;      // the event that began the execution, for its trace
  std::int64_t behind_ = 0;   // events of its session that went first in this batch
  std::string blocked_by_;    // the call or timer that its session waits for; or empty
  std::int64_t last_output_;  // before the event
  std::size_t letters_;       // dead letters before the event
  std::string beginning_;     // members of `recorded` about a conversation that the event begins
};

}  // namespace conversed::daemon
