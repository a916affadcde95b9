#include "daemon/recovery.h"

#include <algorithm>
#include <utility>

#include "daemon/logging.h"
#include "queue/lanes.h"
#include "store/store.h"

namespace conversed::daemon {

using model::fail;
using model::Result;

namespace {

// What is kept of an earlier start stands: from then on everything that was begun has a count, and
// is below these offsets. A partition that it did not know, or whose offsets may have been used
// again since (its epoch is another one), has no such record.
store::RecoveryMarks marks_for(std::span<const queue::PartitionRange> ranges, std::size_t in_flight,
                               const std::optional<store::RecoveryMarks>& kept,
                               model::Timestamp now) {
  store::RecoveryMarks marks{.since = kept ? kept->since : now, .below = {}};
  for (const auto& range : ranges) {
    const auto taken = range.committed + static_cast<std::int64_t>(in_flight);
    model::Position limit{
        .epoch = range.epoch, .partition = range.partition, .offset = std::min(range.end, taken)};
    if (kept) {
      const auto known = std::ranges::find_if(kept->below, [&](const model::Position& mark) {
        return mark.partition == range.partition && mark.epoch == range.epoch;
      });
      if (known != kept->below.end()) limit.offset = known->offset;
    }
    marks.below.push_back(limit);
  }
  return marks;
}

}  // namespace

Result<void> Recovery::begin(std::span<const queue::PartitionRange> ranges, std::size_t in_flight) {
  auto recorded = store_.attempts().recorded();
  if (!recorded) return fail(recorded.error());
  if (store_.was_clean()) {
    // Of a recovery that ended with nothing left to run.
    const bool any = recorded->counts || recorded->marks;
    if (!any) return {};
    return store_.attempts().clear(store::Committer::Patience::until_it_works);
  }
  const auto marks = marks_for(ranges, in_flight, recorded->marks, clock_.now());
  if (recorded->marks != marks) {
    if (auto kept = store_.attempts().mark(marks); !kept) return fail(kept.error());
  }
  for (const auto& limit : marks.below) one_by_one_below_[limit.partition] = limit.offset;
  going_on_ = true;
  // A run that ended in its own recovery has recorded what it began; any other has not.
  if (!recorded->counts) suspect_before_ = marks.since;
  std::int64_t left = 0;
  for (const auto& range : ranges) {
    left += std::max<std::int64_t>(one_by_one_below_[range.partition] - range.committed, 0);
  }
  log::warn("the last run did not stop cleanly: recovering", {{"records", left}});
  return {};
}

// Nothing runs without care before the counts are cleared: if that brings the daemon down, the next
// start has to see that there is no record of it.
Care Recovery::care(const queue::Lanes& lanes) {
  if (!going_on_.load()) return Care::normal;
  if (lanes.recovering()) return Care::record_attempts;
  const std::lock_guard lock(end_);
  if (!going_on_.load()) return Care::normal;
  // Without patience: the workers that come here must not stand still with a store that fails.
  if (auto cleared = store_.attempts().clear(store::Committer::Patience::none); !cleared) {
    if (!std::exchange(clearing_failed_, true)) {
      log::warn("the record of a recovery can't be cleared", {{"error", cleared.error().message}});
    }
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
