#pragma once

#include <cstdint>
#include <vector>

#include "daemon/turns/batch_draft.h"

// Sends each output of a batch to one place. Outputs of a user's message are its client's answer
// until the message is cut, and go to the webhook from then on. All other outputs go to the
// webhook. Kept by: TurnBatchAnswersTest.OutputsOfAMessageAreItsAnswerEvenWithoutItsClient,
// TurnBatchAnswersTest.OutputsAfterACutGoToTheWebhook.
//
// The daemon whose client waits cuts the message at its deadline. A Turn past the deadline cuts it,
// too, since that daemon may be gone.
// Kept by: TurnBatchAnswersTest.PastItsDeadlineAMessageIsCutByTheTurnItself.
namespace conversed::daemon {

// Whether the execution of the speaker's input goes on.
enum class ExecutionState : std::uint8_t { goes_on, at_rest };

// Adds the new outputs of the speaker. Errors: those of the store.
[[nodiscard]] model::Result<void> settle(BatchDraft& draft, const Speaker& speaker,
                                         ExecutionState execution,
                                         std::vector<model::Output> outputs,
                                         const EndpointPtr& endpoint);

// Settles an execution that failed without outputs. A waiting client gets an error, and its key is
// free for a new attempt. The key of a cut message stays used, since its client has an answer.
[[nodiscard]] model::Result<void> settle_failure(BatchDraft& draft, const Speaker& speaker);

}  // namespace conversed::daemon
