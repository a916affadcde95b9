#pragma once

#include <cstdint>

#include "config/settings.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::daemon {

// `conversed new-epoch`: records that are appended from now on count as new. Clears the marks of
// appended timers and calls, whose events are not in the new log. Every daemon has to be stopped:
// the error names those that run. Returns the new epoch.
[[nodiscard]] model::Result<std::int64_t> open_new_epoch(const config::Settings& settings,
                                                         const model::Clock& clock);

}  // namespace conversed::daemon
