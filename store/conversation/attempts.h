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

// Counts how often an event was in hand when a daemon went down, so that one that brings it down
// becomes a dead letter. The commit of an event forgets its count
// (SessionCommit::attempts_settled). Where several daemons share the store, it keeps which run of
// them has taken up a partition, too: a partition that a run has not given up when another one
// takes it up was left behind by a crash. Thread-safe; blocks on the disk. Errors: `unavailable`;
// `timed_out` of a write without patience: ask again, nothing is counted twice.
class Attempts {
 public:
  // Both must outlive it.
  Attempts(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  struct Counted {
    std::string event_id;
    std::int32_t partition = 0;
    int count = 0;

    bool operator==(const Counted&) const = default;
  };
  // By event.
  [[nodiscard]] model::Result<std::vector<Counted>> counted() const;

  // --- Where one daemon reads the whole log ------------------------------------------------------
  // Counts one for each of these, which the last run had in hand; once, however often this is asked
  // for the same `run`, which is not 0. `committed`: for each partition the first offset that is
  // not finished. Counts of finished events are forgotten. Durable when it returns; waits until the
  // store works. Returns what is counted then.
  [[nodiscard]] model::Result<std::vector<Counted>> attribute(
      std::int64_t run, std::span<const InHand> events, std::span<const model::Position> committed);

  // --- Where several daemons read partitions -----------------------------------------------------
  struct Taking {
    std::int32_t partition = 0;
    std::int64_t committed = 0;    // as above
    std::int64_t taken_below = 0;  // what another run may have taken of it
  };
  // What may have been in hand in a partition that was left behind.
  struct Window {
    std::int64_t below = 0;    // records with lower offsets,
    model::Timestamp since{};  // and what waited in inboxes before this

    bool operator==(const Window&) const = default;
  };
  struct TakenUp {
    bool crashed = false;                    // some of them were left behind just now
    std::map<std::int32_t, Window> windows;  // of those that were, until all below is finished
    std::vector<Counted> counted;            // of all of them, by event
  };
  // Durable when it returns; asked again by the same run it finds the same. No patience.
  [[nodiscard]] model::Result<TakenUp> take_up(const std::string& run,
                                               std::span<const Taking> partitions);
  // The event is about to be started for the `count`-th time. Durable when it returns. No patience.
  [[nodiscard]] model::Result<void> begin(const InHand& event, int count);
  // Nothing of these that the run has begun is unfinished; their windows stay. A partition that
  // another run has taken up meanwhile stays that one's. No patience; until it has worked, the
  // partitions count as left behind by a crash.
  [[nodiscard]] model::Result<void> give_up(const std::string& run,
                                            std::span<const std::int32_t> partitions);
  [[nodiscard]] model::Result<void> give_up_all(const std::string& run);

 private:
  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store
