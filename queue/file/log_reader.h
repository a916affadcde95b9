#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "queue/file/log_state.h"

// Reads durable records from the segments, beside the log's thread. Errors: `unavailable` if a file
// can't be read, `internal` if it is damaged.
namespace conversed::queue {

// The records from `from.at` on, at most `max` and about 8 MiB. Moves `from.at` behind them.
[[nodiscard]] Result<std::vector<LogRecord>> read_on(const LogState& log, LogState::FileRead& from,
                                                     std::size_t max);

// As Log::read.
[[nodiscard]] Result<std::vector<LogRecord>> read_records(const LogState& log,
                                                          std::span<const Position> at);

// As Log::unfinished.
[[nodiscard]] Result<std::int64_t> count_unfinished(const LogState& log, const KeyRange& keys);

}  // namespace conversed::queue
