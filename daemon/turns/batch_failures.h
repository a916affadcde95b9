#pragma once

#include <string>

#include "daemon/turns/batch_draft.h"
#include "queue/log.h"

// Makes dead letters of events. A dead letter settles its event: its client is told, its keyed
// answer is stored, its execution ends. Its only other effect is the Endpoint's errorText.
// Kept by: TurnBatchTest.AFailedTurnSaysTheEndpointsErrorText,
// TurnBatchTest.ARefusedEventThatHasToWaitIsSettledAndChangesNothingElse.
namespace conversed::daemon {

// A record that is no event of a conversation. Bytes that the store could not keep, or find again,
// are replaced. Kept by: TurnBatchTest.ARecordThatNoStoreCanHoldIsADeadLetterOfText.
void bury_unreadable(BatchDraft& draft, const store::InboxEvent& parts, const std::string& reason);

[[nodiscard]] model::Result<void> bury(BatchDraft& draft, const model::Event& event,
                                       const store::InboxEvent& parts, const std::string& reason);

// An input that would have to wait in the inbox. The running execution and the inbox stay as they
// are.
[[nodiscard]] model::Result<void> bury_waiting(BatchDraft& draft, const model::Event& event,
                                               const store::InboxEvent& parts,
                                               const std::string& reason);

// An event of a session that can't be read in full. The session's execution ends with it, since it
// could not go on. `execution_lost`: it can't be read, so only the store knows its calls.
// Kept by: TurnBatchTest.AnExecutionThatCannotBeReadLeavesNothingBehind.
[[nodiscard]] model::Result<void> bury_damaged(BatchDraft& draft, const model::Event& event,
                                               const store::InboxEvent& parts,
                                               const std::string& reason, bool execution_lost);

// Whether the store can keep the record's id and type as they are.
[[nodiscard]] bool has_names(const queue::Record& record);

}  // namespace conversed::daemon
