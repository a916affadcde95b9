#pragma once

#include <optional>
#include <string>

#include "daemon/turns/batch_draft.h"

namespace conversed::daemon {

// Why an event can't run; none: it has had its effects.
using TurnFailure = std::optional<std::string>;

// Runs an event on the session that the one before it left. After a failure the draft is of no use:
// its session may have been moved into the Turn. Errors: those of the store.
[[nodiscard]] model::Result<TurnFailure> run_event(BatchDraft& draft, const model::Event& event);

}  // namespace conversed::daemon
