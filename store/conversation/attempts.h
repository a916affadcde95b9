#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::store {

// An event that was in hand when a daemon went down.
struct InHand {
  std::string event_id;
  std::int32_t partition = 0;
  std::int64_t offset = -1;  // in the log; -1: it waited in an inbox
};

// Crash attribution: how often each event was in hand when a daemon crashed. An event that crashes
// the daemon again and again becomes a dead letter. If several daemons share the store, it also
// keeps the run that owns each partition. If a run takes up a partition that the last run has not
// given up, the last run has crashed. Thread-safe; blocks on the disk. Errors: `unavailable`;
// `timed_out` of a write that fails fast: call again, no crash is counted twice.
//
// The transaction of an event's effects deletes its count (SessionCommit::attempts_settled).
// Kept by: AttemptsTest.TheCommitOfAnEventForgetsItsCount.
// The run of a partition is read and changed in one transaction. A run whose partition another run
// has taken up can't give it up.
// Kept by: AttemptsTest.APartitionThatAnotherRunHasNotGivenUpHasAWindow.
class Attempts : Rows {
 public:
  using Rows::Rows;

  struct Counted {
    std::string event_id;
    std::int32_t partition = 0;
    int count = 0;

    bool operator==(const Counted&) const = default;
  };
  // By event.
  [[nodiscard]] model::Result<std::vector<Counted>> counted() const;

  // --- If one daemon reads the whole log ---------------------------------------------------------
  // Adds one to the count of each event that the last run had in hand. A second call for the same
  // `run`, which is not 0, adds nothing. `committed`: the first unfinished offset of each
  // partition; counts of finished events are deleted. Durable when it returns; waits until the
  // store works. Returns all counts.
  [[nodiscard]] model::Result<std::vector<Counted>> attribute(
      std::int64_t run, std::span<const InHand> events, std::span<const model::Position> committed);

  // --- If several daemons read partitions --------------------------------------------------------
  struct Taking {
    std::int32_t partition = 0;
    std::int64_t committed = 0;    // its first unfinished offset
    std::int64_t taken_below = 0;  // another run may have begun records below this offset
  };
  // Events that may have been in hand when the last owner of a partition crashed.
  struct Window {
    std::int64_t below = 0;    // records with lower offsets
    model::Timestamp since{};  // and events that were in inboxes before this time

    bool operator==(const Window&) const = default;
  };
  struct TakenUp {
    bool crashed = false;                    // the last owner of one of the partitions crashed
    std::map<std::int32_t, Window> windows;  // by partition, until all records below are finished
    std::vector<Counted> counted;            // of all taken partitions, by event
  };
  // Durable when it returns. A second call by the same run returns the same. Fails fast.
  [[nodiscard]] model::Result<TakenUp> take_up(const std::string& run,
                                               std::span<const Taking> partitions);
  // Events of the partition with lower offsets run alone after a crash. 0: there are none.
  [[nodiscard]] model::Result<std::int64_t> left_below(std::int32_t partition) const;
  // Notes that the event is about to start for the `count`-th time. Durable when it returns. Fails
  // fast.
  [[nodiscard]] model::Result<void> begin(const InHand& event, int count);
  // Notes that the run has finished all events that it has begun in these partitions. Their windows
  // stay. A partition that another run has taken up meanwhile stays with that run. Fails fast.
  // Until a call succeeds, the next owner assumes a crash.
  [[nodiscard]] model::Result<void> give_up(const std::string& run,
                                            std::span<const std::int32_t> partitions);
  [[nodiscard]] model::Result<void> give_up_all(const std::string& run);
};

}  // namespace conversed::store
