#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "store/committer.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/guarded.h"
#include "store/model/result.h"

namespace conversed::store {

// What the recovery of a partition goes by from the first start behind an unclean stop to its end,
// over all the starts, and daemons, between.
struct RecoveryMark {
  model::Timestamp since{};  // that first start
  // Only records with lower offsets may have been begun without a count, or have a count and be
  // unfinished. The epoch is the partition's at that first start.
  model::Position below;

  bool operator==(const RecoveryMark&) const = default;
};

// Counts how often an event was begun after unclean stops, so that one that brings the daemon down
// becomes a dead letter, and keeps how far this has to go. Where several daemons share the store,
// it keeps which run of them has taken up a partition, too: what a run has not given up when
// another one takes it up was left behind by a crash. Thread-safe; blocks on the disk. Errors:
// `unavailable`; `timed_out` of what writes without patience: ask again.
class Attempts {
 public:
  // Both must outlive it.
  Attempts(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  // Counts one more and returns the count, this one included; durable when it returns, provided
  // that its partition has a mark: without one there is no recovery to keep it for. An event
  // without a count begins at `before`: starts of which there is no record. `at`: where the log has
  // it, so that the mark covers it; none for one that comes from an inbox. Does not wait for a
  // store that fails; whoever asks again after an error, `timed_out` included, is counted once. One
  // thread at a time for one event.
  [[nodiscard]] model::Result<int> begin(const std::string& event_id, int before,
                                         std::int32_t partition,
                                         const std::optional<model::Position>& at);

  struct Recorded {
    bool counts = false;  // without any, the last run ended before it began anything with care
    std::vector<RecoveryMark> marks;  // by partition
  };
  [[nodiscard]] model::Result<Recorded> recorded() const;

  // --- Where one daemon reads the whole log ------------------------------------------------------
  // Keeps these instead of what is kept; durable when it returns. Waits until the store works.
  [[nodiscard]] model::Result<void> mark(const std::vector<RecoveryMark>& marks);

  // Forgets all counts and the marks, at once: what was unfinished is done. May be asked again
  // after an error.
  [[nodiscard]] model::Result<void> clear(Committer::Patience patience);

  // --- Where several daemons read partitions -----------------------------------------------------
  // What a run finds of partitions that it takes up.
  struct TakenUp {
    std::vector<RecoveryMark> recovering;  // those that need it
    std::set<std::int32_t> counted;        // of these, those with counts
  };
  // `marks` has one for each partition: what its recovery would go by if it began now. One that
  // was begun before goes on by its own mark, as long as the epoch is the same. Durable when it
  // returns; asked again by the same run it finds the same. No patience.
  [[nodiscard]] model::Result<TakenUp> take_up(const std::string& run,
                                               std::span<const RecoveryMark> marks);
  // Nothing that the run has begun of these is unfinished. What another one has taken up meanwhile
  // is left to that. A recovery that has not come to its end goes on with the next run. No
  // patience; until it has worked, the partitions count as left behind by a crash.
  [[nodiscard]] model::Result<void> give_up(const std::string& run,
                                            std::span<const std::int32_t> partitions);
  [[nodiscard]] model::Result<void> give_up_all(const std::string& run);
  // Forgets counts and marks of those of these partitions that are still the run's.
  [[nodiscard]] model::Result<void> recovered(const std::string& run,
                                              std::span<const std::int32_t> partitions);

 private:
  [[nodiscard]] model::Result<int> number_of(const std::string& event_id, int before);

  Database& database_;
  Committer& committer_;
  // The numbers of counts that are not known to be durable.
  model::Guarded<std::map<std::string, int>> begun_;
};

}  // namespace conversed::store
