#pragma once

#include <cstdint>
#include <span>

#include "config/settings.h"
#include "queue/log.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::daemon {

// Whether the log holds all that the store has seen. A log that ends below a position of the store,
// or is in an older epoch, was restored from an earlier state: its next records would look like
// redeliveries and be dropped. `conflict` then, with what to do.
[[nodiscard]] model::Result<void> check_log_against_store(
    std::span<const queue::PartitionRange> log, std::span<const model::Position> store);

// `conversed new-epoch`: what is appended from now on counts as new whatever the store has seen.
// Every daemon has to be stopped: the error names those that run. Returns the new epoch.
[[nodiscard]] model::Result<std::int64_t> open_new_epoch(const config::Settings& settings,
                                                         const model::Clock& clock);

}  // namespace conversed::daemon
