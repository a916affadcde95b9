#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/committer.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/guarded.h"
#include "store/model/result.h"

namespace conversed::store {

// What a recovery goes by from the first start behind an unclean stop to its end, over all the
// starts between.
struct RecoveryMarks {
  model::Timestamp since{};  // that first start
  // One a partition, by number: only records with lower offsets may have been begun without a
  // count, or have a count and be unfinished. The epoch is the partition's at that first start.
  std::vector<model::Position> below;

  bool operator==(const RecoveryMarks&) const = default;
};

// Counts how often an event was begun after unclean stops, so that one that brings the daemon down
// becomes a dead letter, and keeps how far this has to go. Thread-safe; blocks on the disk. Errors:
// `unavailable`.
class Attempts {
 public:
  // Both must outlive it.
  Attempts(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  // Counts one more and returns the count, this one included; durable when it returns, provided
  // that there are marks: without them there is no recovery to keep it for. An event without a
  // count begins at `before`: starts of which there is no record. `at`: where the log has it, so
  // that the marks cover it; none for one that comes from an inbox. Does not wait for a store that
  // fails; whoever asks again after an error, `timed_out` included, is counted once. One thread at
  // a time for one event.
  [[nodiscard]] model::Result<int> begin(const std::string& event_id, int before,
                                         const std::optional<model::Position>& at);

  struct Recorded {
    bool counts = false;  // without any, the last run ended before it began anything with care
    std::optional<RecoveryMarks> marks;
  };
  [[nodiscard]] model::Result<Recorded> recorded() const;

  // Keeps these instead of what is kept; durable when it returns. Waits until the store works.
  [[nodiscard]] model::Result<void> mark(const RecoveryMarks& marks);

  // Forgets all counts and the marks, at once: what was unfinished is done. May be asked again
  // after an error.
  [[nodiscard]] model::Result<void> clear(Committer::Patience patience);

 private:
  [[nodiscard]] model::Result<int> number_of(const std::string& event_id, int before);

  Database& database_;
  Committer& committer_;
  // The numbers of counts that are not known to be durable.
  model::Guarded<std::map<std::string, int>> begun_;
};

}  // namespace conversed::store
