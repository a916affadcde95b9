#pragma once

#include <string>

#include "store/committer.h"
#include "store/model/result.h"

namespace conversed::store {

// Counts how often an event was begun after an unclean stop, so that one that brings the daemon
// down becomes a dead letter. Thread-safe; blocks on the disk. Errors: `unavailable`.
class Attempts {
 public:
  // Must outlive it.
  explicit Attempts(Committer& committer) : committer_(committer) {}

  // Counts one more and returns the count, this one included; durable when it returns.
  [[nodiscard]] model::Result<int> begin(const std::string& event_id);

  // Forgets all counts: what was unfinished is done.
  [[nodiscard]] model::Result<void> clear();

 private:
  Committer& committer_;
};

}  // namespace conversed::store
