#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "store/model/result.h"
#include "store/sql/sql.h"

namespace conversed::store {

// The partitions whose sessions a database may change. A store of one database has no list of them,
// and may change all. A partition that moves to another server is closed here before its rows are
// copied (store/shards/layout.h).
//
// Marks of services and retention pass the gate. A lost mark repeats its work: an output is
// delivered again with its webhook-id, and the second event of a call or a timer finds no claim. A
// copied row is as old as its original, so the retention deletes it, too.
//
// For the Committer's thread.
class PartitionGate {
 public:
  // Call it at the begin of each transaction that writes. Such transactions take turns, so the list
  // stays true until the COMMIT. Throws SqlError.
  void ask(Connection& connection);
  // Reads the list if it has changed. To be called in the same transaction, before the functions
  // below. A second call does nothing. Throws SqlError.
  void look(Connection& connection);

  // `key`: encoded.
  [[nodiscard]] bool is_open(std::string_view key) const;
  // `unavailable`: the session is being moved, or lies on another server.
  [[nodiscard]] model::Result<void> check(std::string_view key) const;

 private:
  std::optional<Asked<std::int64_t>> asked_;  // for the version of the list
  std::optional<std::int64_t> seen_;          // the version that `open_` is of
  std::vector<bool> open_;                    // by partition; empty: there is no list
};

// Whether the database has a list of open partitions.
[[nodiscard]] bool has_partition_list(Connection& connection);
// Begins the list of a log with this number of partitions, all of them closed.
void note_log_partitions(Connection& connection, std::int32_t partitions);
// Opens or closes a partition in this database. Tolerates a second call.
void open_partition(Connection& connection, std::int32_t partition);
void close_partition(Connection& connection, std::int32_t partition);
// The closed partitions of which this database may still have rows, and the end of that.
[[nodiscard]] std::vector<std::int32_t> partition_leftovers(Connection& connection);
void forget_leftovers(Connection& connection, std::int32_t partition);
[[nodiscard]] bool is_partition_open(Connection& connection, std::int32_t partition);

}  // namespace conversed::store
