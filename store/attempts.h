#pragma once

#include <string>

#include "store/committer.h"
#include "store/model/result.h"

namespace conversed::store {

// Counts how often an event was begun after unclean stops, so that one that brings the daemon down
// becomes a dead letter. Thread-safe; blocks on the disk. Errors: `unavailable`.
class Attempts {
 public:
  // Both must outlive it.
  Attempts(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  // Counts one more and returns the count, this one included; durable when it returns. An event
  // without a count begins at `before`: starts of which there is no record.
  [[nodiscard]] model::Result<int> begin(const std::string& event_id, int before);

  // Whether there is no count at all: the last run ended before it began anything with care.
  [[nodiscard]] model::Result<bool> empty() const;

  // Forgets all counts: what was unfinished is done.
  [[nodiscard]] model::Result<void> clear();

 private:
  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store
