#include "queue/log.h"

#include <algorithm>

namespace conversed::queue {
namespace {

std::string place_of(const Position& at) {
  return "epoch " + std::to_string(at.epoch) + ", partition " + std::to_string(at.partition);
}

}  // namespace

std::int64_t lag_of(std::span<const PartitionRange> ranges) {
  std::int64_t lag = 0;
  for (const PartitionRange& range : ranges) lag += range.lag();
  return lag;
}

bool is_finished(std::span<const PartitionRange> ranges, const Position& at) {
  const auto range = std::ranges::find(ranges, at.partition, &PartitionRange::partition);
  return range == ranges.end() || at.epoch < range->epoch || at.offset < range->committed;
}

Error not_handed_out(const Position& at) {
  return {Errc::conflict, "No record was handed out at " + place_of(at) + ", offset " +
                              std::to_string(at.offset) + "."};
}

Result<bool> is_after(const Position& a, const Position& b) {
  if (a.epoch != b.epoch || a.partition != b.partition) {
    return model::fail(Errc::conflict, "Positions have no order across epochs and partitions: " +
                                           place_of(a) + " and " + place_of(b) + ".");
  }
  return a.offset > b.offset;
}

}  // namespace conversed::queue
