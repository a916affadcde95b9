#pragma once

#include <cstdint>
#include <string_view>

#include "store/model/result.h"
#include "store/model/session_keys.h"
#include "store/shards/shard.h"

// The rows of a partition of the log on a PostgreSQL server. For move.cc and tests.
//
// The rows of sessions, of their children and receipts, of users (profiles), and those with a
// session's key belong to the partition of the session's key. Attempts, runs and positions name
// their partition. Claims, cuts and messages that have failed name neither session nor partition:
// all of them are copied, none is deleted, and they expire. Plain deliveries name no session; they
// are copied with their receipt and stay until the retention ends.
namespace conversed::store {

struct PartitionOfLog {
  std::int32_t number = 0;
  std::int32_t count = 0;  // of the log's partitions

  // `key`: encoded, or its project and user with the separator between them.
  [[nodiscard]] bool has(std::string_view key) const {
    return model::partition_of(key, count) == number;
  }
};

// Copies the rows; returns how many. `from` reads one snapshot. `to` has begun a transaction, and
// has none of the rows. Reads and writes batches of a bounded size. Throws SqlError.
[[nodiscard]] std::int64_t copy_rows(Connection& from, Connection& to,
                                     const PartitionOfLog& partition);

// Deletes the rows in transactions of a bounded size; returns how many. The partition is closed in
// this shard. After an error, call it again: it goes on. `to_do`: only rows that services look for,
// so that no output of the session is sent from two shards. After `all` the shard has no leftovers
// of the partition (partition_gate.h).
enum class RowsToRemove : std::uint8_t { to_do, all };
[[nodiscard]] model::Result<std::int64_t> remove_rows(Shard& shard, const PartitionOfLog& partition,
                                                      RowsToRemove which);

}  // namespace conversed::store
