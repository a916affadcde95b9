#include "daemon/cluster/ownership.h"

#include <cstddef>

#include "queue/log.h"

namespace conversed::daemon {

void Ownership::begin(std::int32_t partitions) {
  generations_.with([&](Generations& generations) {
    generations.of.assign(static_cast<std::size_t>(partitions), 0);
  });
  count_ = partitions;
}

void Ownership::set(std::span<const std::int32_t> partitions, bool ours) {
  generations_.with([&](Generations& generations) {
    if (ours) ++generations.last;
    for (const auto each : partitions) {
      // A partition outside the log's number holds no session.
      const auto at = static_cast<std::size_t>(each);
      if (at < generations.of.size()) generations.of[at] = ours ? generations.last : 0;
    }
  });
}

std::uint64_t Ownership::generation_of(const model::SessionKey& key) const {
  if (of_ == Of::everything) return 1;
  const auto count = count_.load();
  if (count == 0) return 0;
  const auto partition = queue::partition_of(key.encode(), count);
  return generations_.with([&](const Generations& generations) {
    return generations.of[static_cast<std::size_t>(partition)];
  });
}

std::uint64_t Ownership::newest_generation() const {
  if (of_ == Of::everything) return 1;
  return generations_.with([](const Generations& generations) { return generations.last; });
}

std::vector<std::int32_t> Ownership::partitions() const {
  return generations_.with([](const Generations& generations) {
    std::vector<std::int32_t> ours;
    for (std::size_t each = 0; each < generations.of.size(); ++each) {
      if (generations.of[each] != 0) ours.push_back(static_cast<std::int32_t>(each));
    }
    return ours;
  });
}

}  // namespace conversed::daemon
