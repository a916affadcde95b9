#pragma once

#include <string>

#include "daemon/turns/batch_draft.h"
#include "queue/log.h"

// Makes dead letters of events. A dead letter settles its event: the client gets an error, the
// keyed answer is stored, the execution ends. Its only other effect is the Endpoint's errorText, or
// what the Endpoint's Flow for errors does after a failed Turn.
// Kept by: TurnBatchTest.AFailedTurnSaysTheEndpointsErrorText,
// TurnBatchTest.ARefusedEventThatHasToWaitIsSettledAndChangesNothingElse.
namespace conversed::daemon {

// For a record that is no event of a conversation. Bytes that the store could not keep, or find
// again, are replaced. Kept by: TurnBatchTest.ARecordThatNoStoreCanHoldIsADeadLetterOfText.
void bury_unreadable(BatchDraft& draft, const store::InboxEvent& parts, const std::string& reason);

// `Cause::turn`: the event's Turn has failed, so the Endpoint's Flow for errors runs.
enum class Cause : std::uint8_t { turn, other };
[[nodiscard]] model::Result<void> bury(BatchDraft& draft, const model::Event& event,
                                       const store::InboxEvent& parts, const std::string& reason,
                                       Cause cause = Cause::other);

// For an input that would have to wait in the inbox. The running execution and the inbox do not
// change.
[[nodiscard]] model::Result<void> bury_waiting(BatchDraft& draft, const model::Event& event,
                                               const store::InboxEvent& parts,
                                               const std::string& reason);

// For an event of a session with unreadable parts. The session's execution ends, since it could not
// go on. `execution_lost`: the execution itself can't be read, so only the store knows its calls.
// Kept by: TurnBatchTest.AnExecutionThatCannotBeReadLeavesNothingBehind.
[[nodiscard]] model::Result<void> bury_damaged(BatchDraft& draft, const model::Event& event,
                                               const store::InboxEvent& parts,
                                               const std::string& reason, bool execution_lost);

// Whether the store can keep the record's id and type as they are.
[[nodiscard]] bool has_names(const queue::Record& record);

}  // namespace conversed::daemon
