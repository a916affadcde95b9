#pragma once

#include <cstdint>
#include <span>

#include "config/settings.h"
#include "queue/log.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::daemon {

// `conflict`, with what to do, if the log ends below a position of the store or is in an older
// epoch. Such a log was restored from an earlier state: its next records would look like
// redeliveries and be dropped.
[[nodiscard]] model::Result<void> check_log_against_store(
    std::span<const queue::PartitionRange> log, std::span<const model::Position> store);

// `conversed new-epoch`: records that are appended from now on count as new. Clears the marks of
// appended timers and calls, whose events are not in the new log. Every daemon has to be stopped:
// the error names those that run. Returns the new epoch.
[[nodiscard]] model::Result<std::int64_t> open_new_epoch(const config::Settings& settings,
                                                         const model::Clock& clock);

}  // namespace conversed::daemon
