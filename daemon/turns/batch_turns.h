#pragma once

#include <optional>
#include <string>

#include "daemon/turns/batch_draft.h"

namespace conversed::daemon {

// Why an event can't run. None: it has run.
using TurnFailure = std::optional<std::string>;

// Runs an event on the session as the previous event left it. After a failure the draft must be
// discarded: its session may have been moved into the Turn. Errors: those of the store.
[[nodiscard]] model::Result<TurnFailure> run_event(BatchDraft& draft, const model::Event& event);

// Runs the Endpoint's Flow for errors, since the event's Turn has failed for this reason. False:
// the Endpoint has none, or the error is of that Flow itself. Then the draft's session is
// unchanged. Errors: those of the store. Kept by: ErrorFlowTest.RunsInTheCommitOfTheDeadLetter,
// ErrorFlowTest.AnErrorInItEndsThere.
[[nodiscard]] model::Result<bool> run_error_flow(BatchDraft& draft, const model::Event& event,
                                                 const EndpointPtr& endpoint,
                                                 const std::string& reason);

}  // namespace conversed::daemon
