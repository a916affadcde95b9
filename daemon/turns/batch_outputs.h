#pragma once

#include <cstdint>
#include <vector>

#include "daemon/turns/batch_draft.h"

// Sends each output of a batch one way. Outputs of a user's message are its client's answer until
// the message is cut, and go to the webhook from then on. All other outputs go to the webhook.
// Kept by: TurnBatchAnswersTest.OutputsOfAMessageAreItsAnswerEvenWithoutItsClient,
// TurnBatchAnswersTest.OutputsAfterACutGoToTheWebhook.
//
// The daemon whose client waits cuts the message at its deadline. A Turn past the deadline cuts it,
// too, since that daemon may be gone.
// Kept by: TurnBatchAnswersTest.PastItsDeadlineAMessageIsCutByTheTurnItself.
namespace conversed::daemon {

// Whether the execution of the speaker's input goes on.
enum class ExecutionState : std::uint8_t { goes_on, at_rest };

// Adds what the speaker has said now. Errors: those of the store.
[[nodiscard]] model::Result<void> settle(BatchDraft& draft, const Speaker& speaker,
                                         ExecutionState execution,
                                         std::vector<model::Output> outputs,
                                         const EndpointPtr& endpoint);

// The execution failed without a word. A waiting client is told so, and a key is free for a new
// attempt. The key of a cut message is spent, as its client was answered.
[[nodiscard]] model::Result<void> settle_failure(BatchDraft& draft, const Speaker& speaker);

}  // namespace conversed::daemon
