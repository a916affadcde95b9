#include "queue/one_by_one.h"

#include <algorithm>

namespace conversed::queue {

bool OneByOne::is_below(std::int32_t partition, std::int64_t offset) const {
  const auto limit = limits_.find(partition);
  return limit != limits_.end() && offset < limit->second;
}

void OneByOne::begin(const Limits& limits) {
  if (limits.empty()) return;
  for (const auto& [partition, offset] : limits) limits_[partition] = offset;
  over_ = false;
  goes_on_ = true;
}

void OneByOne::forget(std::span<const std::int32_t> partitions) {
  for (const auto partition : partitions) limits_.erase(partition);
}

void OneByOne::set_unsettled(bool& lane, bool unsettled) {
  if (lane == unsettled) return;
  lane = unsettled;
  unsettled ? ++unsettled_ : --unsettled_;
}

void OneByOne::update(const ProgressMap& progress) {
  if (over_) return;
  goes_on_ =
      unsettled_ > 0 ||
      (!limits_.empty() && (!assigned_once_ || std::ranges::any_of(limits_, [&](const auto& limit) {
        const auto found = progress.find(limit.first);
        return found != progress.end() && found->second.lowest_unfinished() < limit.second;
      })));
}

void OneByOne::hand_out() {
  over_ = !goes_on_;
  if (over_) limits_.clear();
}

}  // namespace conversed::queue
