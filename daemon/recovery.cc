#include "daemon/recovery.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/logging.h"
#include "queue/lanes.h"
#include "store/store.h"

namespace conversed::daemon {

using model::fail;
using model::Result;

namespace {

// What the recovery of a partition goes by that begins now.
store::RecoveryMark mark_for(const queue::PartitionRange& range, std::size_t in_flight,
                             model::Timestamp now) {
  const auto taken = range.committed + static_cast<std::int64_t>(in_flight);
  return {.since = now,
          .below = {.epoch = range.epoch,
                    .partition = range.partition,
                    .offset = std::min(range.end, taken)}};
}

// What is kept of an earlier start stands: from then on everything that was begun has a count, and
// is below these offsets. A partition that it did not know, or whose offsets may have been used
// again since (its epoch is another one), has no such record.
std::vector<store::RecoveryMark> marks_for(std::span<const queue::PartitionRange> ranges,
                                           std::size_t in_flight,
                                           const std::vector<store::RecoveryMark>& kept,
                                           model::Timestamp now) {
  const auto since = kept.empty() ? now : kept.front().since;
  std::vector<store::RecoveryMark> marks;
  for (const auto& range : ranges) {
    auto mark = mark_for(range, in_flight, since);
    const auto known = std::ranges::find_if(kept, [&](const store::RecoveryMark& each) {
      return each.below.partition == range.partition && each.below.epoch == range.epoch;
    });
    if (known != kept.end()) mark.below.offset = known->below.offset;
    marks.push_back(mark);
  }
  return marks;
}

std::int64_t left_below(const Recovery::Limits& limits,
                        std::span<const queue::PartitionRange> ranges) {
  std::int64_t left = 0;
  for (const auto& range : ranges) {
    const auto limit = limits.find(range.partition);
    if (limit != limits.end()) left += std::max<std::int64_t>(limit->second - range.committed, 0);
  }
  return left;
}

}  // namespace

Result<void> Recovery::begin(std::span<const queue::PartitionRange> ranges, std::size_t in_flight) {
  auto recorded = store_.attempts().recorded();
  if (!recorded) return fail(recorded.error());
  if (store_.was_clean()) {
    // Of a recovery that ended with nothing left to run.
    const bool any = recorded->counts || !recorded->marks.empty();
    if (!any) return {};
    return store_.attempts().clear(store::Committer::Patience::until_it_works);
  }
  const auto marks = marks_for(ranges, in_flight, recorded->marks, clock_.now());
  if (recorded->marks != marks) {
    if (auto kept = store_.attempts().mark(marks); !kept) return fail(kept.error());
  }
  for (const auto& mark : marks) {
    one_by_one_below_[mark.below.partition] = mark.below.offset;
    // A run that ended in its own recovery has recorded what it began; any other has not.
    if (!recorded->counts) suspect(mark);
  }
  going_on_ = true;
  log::warn("the last run did not stop cleanly: recovering",
            {{"records", left_below(one_by_one_below_, ranges)}});
  return {};
}

Result<Recovery::Limits> Recovery::take_up(std::span<const queue::PartitionRange> ranges,
                                           std::size_t in_flight) {
  {
    const std::lock_guard lock(end_);
    taken_up_.clear();  // of a try that came to nothing
    taking_up_ = false;
  }
  std::vector<store::RecoveryMark> marks;
  for (const auto& range : ranges) marks.push_back(mark_for(range, in_flight, clock_.now()));
  auto taken = store_.attempts().take_up(run_, marks);
  if (!taken) return fail(taken.error());
  suspects_.with([&](auto& suspects) {
    for (const auto& range : ranges) suspects.erase(range.partition);
  });
  Limits limits;
  for (const auto& mark : taken->recovering) {
    limits[mark.below.partition] = mark.below.offset;
    if (!taken->counted.contains(mark.below.partition)) suspect(mark);
  }
  if (limits.empty()) return limits;
  log::warn("partitions were left behind by a crash: recovering",
            {{"partitions", limits.size()}, {"records", left_below(limits, ranges)}});
  const std::lock_guard lock(end_);
  for (const auto& [partition, limit] : limits) taken_up_.insert(partition);
  // The Lanes may begin with them before they are told that this is over.
  taking_up_ = true;
  return limits;
}

// Not before: as long as the Lanes don't go one by one, it looks as if all were over.
void Recovery::taken_up() {
  const std::lock_guard lock(end_);
  if (taken_up_.empty()) return;
  recovering_.merge(taken_up_);
  taken_up_.clear();
  going_on_ = true;
  taking_up_ = false;
}

void Recovery::giving_up(std::span<const std::int32_t> partitions) {
  const std::lock_guard lock(end_);
  for (const auto partition : partitions) {
    taken_up_.erase(partition);
    recovering_.erase(partition);
  }
}

Result<void> Recovery::given_up(std::span<const std::int32_t> partitions) {
  return store_.attempts().give_up(run_, partitions);
}

Result<void> Recovery::stopped() {
  return store_.attempts().give_up_all(run_);
}

void Recovery::suspect(const store::RecoveryMark& mark) {
  suspects_.with([&](auto& suspects) { suspects[mark.below.partition] = mark.since; });
}

std::optional<model::Timestamp> Recovery::suspect_before(std::int32_t partition) const {
  return suspects_.with([&](const auto& suspects) -> std::optional<model::Timestamp> {
    const auto found = suspects.find(partition);
    if (found == suspects.end()) return std::nullopt;
    return found->second;
  });
}

// Without patience: the workers that come here must not stand still with a store that fails.
Result<void> Recovery::clear() {
  if (run_.empty()) return store_.attempts().clear(store::Committer::Patience::none);
  const std::vector<std::int32_t> partitions(recovering_.begin(), recovering_.end());
  if (partitions.empty()) return {};
  return store_.attempts().recovered(run_, partitions);
}

// Nothing runs without care before the counts are cleared: if that brings the daemon down, the next
// start has to see that there is no record of it.
Care Recovery::care(const queue::Lanes& lanes, std::optional<std::int32_t> partition) {
  if (!taking_up_.load() && !going_on_.load()) return Care::normal;
  const std::lock_guard lock(end_);
  if (taking_up_.load()) return Care::record_attempts;
  if (!going_on_.load()) return Care::normal;
  // Another one may have begun meanwhile.
  if (lanes.recovering()) {
    const bool concerned = !partition || recovering_.contains(*partition);
    return concerned ? Care::record_attempts : Care::normal;
  }
  if (auto cleared = clear(); !cleared) {
    if (!std::exchange(clearing_failed_, true)) {
      log::warn("the record of a recovery can't be cleared", {{"error", cleared.error().message}});
    }
    return Care::record_attempts;
  }
  recovering_.clear();
  going_on_ = false;
  log::info("recovered what the last run left unfinished");
  return Care::normal;
}

bool Recovery::done(const queue::Lanes& lanes) const {
  return !going_on_.load() || !lanes.recovering();
}

}  // namespace conversed::daemon
