#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/turns/batch_draft.h"

namespace conversed::daemon {

// Sends each output of a batch one way. Outputs of a user's message are its client's answer until
// the message is cut, and go to the webhook from then on. All other outputs go to the webhook.
// Kept by: TurnBatchAnswersTest.WhatAMessageSaysIsItsAnswerWhetherOrNotItsClientIsThere,
// TurnBatchAnswersTest.WhatIsSaidBehindACutIsTheWebhooks.
//
// The daemon whose client waits cuts the message at its deadline. A Turn past the deadline cuts it,
// too, since that daemon may be gone.
// Kept by: TurnBatchAnswersTest.PastItsDeadlineAMessageIsCutByTheTurnItself.
class BatchOutputs {
 public:
  explicit BatchOutputs(BatchDraft& draft) : draft_(draft) {}  // must outlive it

  enum class Execution : std::uint8_t { goes_on, at_rest };
  // Adds what the speaker has said now. Errors: those of the store.
  [[nodiscard]] model::Result<void> settle(const Speaker& speaker, Execution execution,
                                           std::vector<model::Output> outputs,
                                           const EndpointPtr& endpoint);

  // The execution failed without a word. A waiting client is told so, and a key is free for a new
  // attempt. The key of a cut message is spent, as its client was answered.
  [[nodiscard]] model::Result<void> settle_failure(const Speaker& speaker);

 private:
  [[nodiscard]] model::Result<bool> takes_answers(const Speaker& speaker, std::int64_t said_before);
  [[nodiscard]] model::Result<void> come_to_rest(const Speaker& speaker, bool answers,
                                                 const std::vector<model::Output>& outputs);
  [[nodiscard]] model::Result<api::Answer> answer_of(const Speaker& speaker,
                                                     const std::vector<model::Output>& outputs);
  // `body`: none if the input failed.
  void keep_answer(const std::string& input_id, std::optional<std::string> body);

  BatchDraft& draft_;
};

}  // namespace conversed::daemon
