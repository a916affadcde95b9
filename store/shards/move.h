#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "store/model/result.h"
#include "store/shards/layout.h"
#include "store/shards/shard.h"

namespace conversed::store {

// The step of a move that has just ended.
enum class MoveStep : std::uint8_t {
  announced,     // daemons know of the move, and give the partition up
  given_up,      // no daemon runs events of the partition
  not_given_up,  // its owner did not in time; from the next step on, its commits are refused
  closed,        // no daemon can change the partition's sessions
  cleared,       // rows that an earlier move left on the target are deleted
  copied,        // the target has all rows, and its sessions can be changed
  switched,      // daemons take the partition up at the target
  removed,       // the old server has no rows of the partition
  ended,         // an unfinished move was ended: the partition is open on the old server
};

struct MoveSettings {
  // How long the owner of the partition may take to give it up.
  std::chrono::milliseconds drain = std::chrono::seconds(30);
  // How long rows stay on the old server after the switch, for requests that daemons began there.
  std::chrono::milliseconds readers{0};
  // Called after each step, with the number of rows of `cleared`, `copied` and `removed`. False
  // ends the move, which another call continues.
  std::function<bool(MoveStep step, std::int64_t rows)> done{};
};

struct MoveReport {
  std::size_t from = 0;
  std::int64_t copied = 0;  // rows; 0 if an earlier call has copied them
  std::int64_t removed = 0;
};

// Moves a partition of the log, with its sessions and users, to another shard while daemons run.
// From `announced` to `switched` the sessions can be read, their events wait in the log, and other
// changes are `unavailable`.
//
// - The layout says who runs events and where reads look. The list of each server says where
//   commits are accepted (PartitionGate), and it decides. The source is closed before the copy
//   begins. The transaction of the copy opens the target, so nobody writes there before all rows
//   are there, and no crash leaves both servers open.
// - The copying transaction does not wait for its turn, so the target's commits go on. It adds rows
//   of sessions that no daemon knows there. It never changes rows that are there already.
// - After an error or a crash, the same call goes on where the move stands. Until `switched` the
//   move can't get another target. After that, the call deletes the rows that are left behind.
//
// Errors: `invalid_argument` (there is no such partition or shard), `conflict` (the partition is
// there already, or is being moved elsewhere; another move runs; the store has one server, or no
// layout yet), and those of the databases, whose message names the step. Blocks; one call at a time
// in all processes. All servers that have or get the rows have to be reachable.
// Kept by: MoveTest.AMovedPartitionReadsAsBefore, MoveTest.AMoveGoesOnAfterEachStep.
//
// A call with the shard where the partition still is ends an unfinished move, before its rows are
// copied: the partition is open there again.
[[nodiscard]] model::Result<MoveReport> move_partition(const Shards& shards, Layout& layout,
                                                       std::int32_t partition, std::size_t to,
                                                       const MoveSettings& settings = {});

// Deletes the rows that moves which ended early have left on old servers. Returns how many. Does
// nothing while a move runs. Errors: those of the databases.
// Kept by: MoveTest.LeftoversOfAnUnfinishedMoveAreDeleted.
[[nodiscard]] model::Result<std::int64_t> remove_leftovers(const Shards& shards, Layout& layout);

}  // namespace conversed::store
