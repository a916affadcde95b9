#include "daemon/recovery.h"

#include <algorithm>

#include "daemon/logging.h"
#include "queue/lanes.h"
#include "store/store.h"

namespace conversed::daemon {

using model::fail;
using model::Result;

Result<void> Recovery::begin() {
  auto unrecorded = store_.attempts().empty();
  if (!unrecorded) return fail(unrecorded.error());
  if (store_.was_clean()) {
    // Counts of a recovery that ended with nothing left to run.
    return *unrecorded ? Result<void>() : store_.attempts().clear();
  }
  log::warn("the last run did not stop cleanly: recovering");
  going_on_ = true;
  // A run that ended in its own recovery has recorded what it began; any other has not.
  if (*unrecorded) suspect_before_ = clock_.now();
  return {};
}

std::map<std::int32_t, std::int64_t> Recovery::one_by_one_below(
    std::span<const queue::PartitionRange> ranges, std::size_t in_flight) const {
  std::map<std::int32_t, std::int64_t> below;
  if (!going_on_.load()) return below;
  for (const auto& range : ranges) {
    const auto taken = range.committed + static_cast<std::int64_t>(in_flight);
    below[range.partition] = std::min(range.end, taken);
  }
  return below;
}

// Nothing runs without care before the counts are cleared: if that brings the daemon down, the next
// start has to see that there is no record of it.
Care Recovery::care(const queue::Lanes& lanes) {
  if (!going_on_.load()) return Care::normal;
  if (lanes.recovering()) return Care::record_attempts;
  const std::lock_guard lock(end_);
  if (!going_on_.load()) return Care::normal;
  if (auto cleared = store_.attempts().clear(); !cleared) {
    log::warn("attempts can't be cleared", {{"error", cleared.error().message}});
    return Care::record_attempts;
  }
  going_on_ = false;
  log::info("recovered what the last run left unfinished");
  return Care::normal;
}

bool Recovery::done(const queue::Lanes& lanes) const {
  return !going_on_.load() || !lanes.recovering();
}

}  // namespace conversed::daemon
