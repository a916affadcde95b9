#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "store/model/event.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"
#include "store/shards/shard.h"

namespace conversed::store {

// Which shard has which partition of the log. The first shard keeps it in `partition_shards`. Each
// shard has its own list of the partitions whose sessions it may change (PartitionGate), which
// decides. A store with one shard needs neither: the first shard has everything.
//
// Thread-safe.
class Layout {
 public:
  // Must outlive it.
  explicit Layout(const Shards& shards) : shards_(shards) {}

  // Reads the stored layout, again after a change. `conflict` if it names a shard that is missing.
  [[nodiscard]] model::Result<void> read();

  // Lays out a log with this number of partitions, if the store has several shards. An empty store
  // gets its partitions spread over the shards in turn. All partitions of a store with sessions
  // stay in the first shard. `conflict` if the stored layout is for another number of partitions.
  [[nodiscard]] model::Result<void> settle(std::int32_t partitions);

  // Whether it is known where sessions belong. A store of one shard is always settled.
  [[nodiscard]] bool is_settled() const;

  // Whether the partition is being moved to another shard. Its sessions can be read, and none of
  // them can be changed.
  [[nodiscard]] bool is_moving(std::int32_t partition) const;

  // The place of a session or a partition in Shards: 0 without a layout.
  [[nodiscard]] std::size_t shard_of(const model::SessionKey& key) const;
  [[nodiscard]] std::size_t shard_of(std::int32_t partition) const;

  struct Place {
    std::size_t shard = 0;
    std::optional<std::size_t> moves_to{};
  };
  using Places = std::vector<Place>;  // by partition; empty: there is no layout
  [[nodiscard]] Places places() const;

 private:
  [[nodiscard]] static Places stored_places(Connection& connection);
  [[nodiscard]] model::Result<void> open_partitions(const Places& places);
  [[nodiscard]] model::Result<void> take(Places places);

  const Shards& shards_;
  std::mutex reading_;  // so that no older layout replaces a newer one
  model::Guarded<Places> places_;
};

}  // namespace conversed::store
