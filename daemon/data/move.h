#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "config/settings.h"
#include "store/model/clock.h"
#include "store/model/result.h"

// Commands of `conversed` on a store with several servers, while daemons run. Errors contain no
// URL.
namespace conversed::daemon {

// `conversed shards`: a table of the partitions and one of the shards, for people. `conflict` if
// the store has one server or is not laid out.
[[nodiscard]] model::Result<std::string> describe_shards(const config::Settings& settings,
                                                         const model::Clock& clock);

struct PartitionMove {
  std::int32_t partition = 0;
  std::size_t to = 0;  // the shard
  std::chrono::milliseconds drain{};
};

// `conversed move-partition`: store::move_partition. `say` gets a line for people after each step.
[[nodiscard]] model::Result<void> move_partition(const config::Settings& settings,
                                                 const PartitionMove& move,
                                                 const model::Clock& clock,
                                                 const std::function<void(std::string_view)>& say);

}  // namespace conversed::daemon
