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

}  // namespace conversed::daemon
