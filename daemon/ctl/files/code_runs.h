#pragma once

#include "store/model/effects.h"
#include "store/model/event.h"

namespace conversed::ctl {

// Runs the script of a `code` Node in a sandbox of this process, as the daemon does. Blocks for its
// time at most. For one thread.
[[nodiscard]] model::CallResult run_script(const model::PendingCall& call);

}  // namespace conversed::ctl
