#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "queue/file/log_keys.h"
#include "queue/file/log_state.h"

namespace conversed::queue {

// A segment's file is named by its number, with 12 digits.
[[nodiscard]] std::string segment_name(std::uint64_t number);
[[nodiscard]] std::optional<std::uint64_t> segment_number(std::string_view name);

// The log in a folder, as read from its files.
struct RecoveredLog {
  LogMarks marks;                // `end`: the end of the log; no partitions if there is no log
  LogState::Segments segments;   // in use, oldest first
  std::uint32_t checksum = 0;    // of the last frame
  std::uint64_t last_batch = 0;  // where it begins in its segment
  std::vector<PlacedKey> keys;   // which the store may not have
  std::vector<Segment> spares;   // files out of use; their bytes are not in the log
  std::uint64_t highest = 0;     // number of a file
};

// Reads the log, and changes nothing. The log ends before its first bad frame, unless a batch
// behind that frame names a later end. Errors: `internal` if acknowledged records are damaged or
// missing, with file, place and remedy; `not_supported` if a newer version wrote the log;
// `unavailable`.
[[nodiscard]] Result<RecoveredLog> recover(Disk& disk);

// Whether the log in a folder has had a record, or more than one epoch. No process writes to the
// folder meanwhile. Errors as `recover`.
[[nodiscard]] Result<bool> was_used(const std::filesystem::path& folder);

// Whether the log in a folder is whole. No process writes to the folder meanwhile. Errors as
// `recover`.
[[nodiscard]] Result<void> check_log(const std::filesystem::path& folder);

}  // namespace conversed::queue
