#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/committer.h"
#include "store/model/effects.h"
#include "store/model/result.h"

namespace conversed::store {

// Calls that Nodes wait for, and timers. A row is the claim of what comes of it: the Turn that
// takes that deletes the row. Thread-safe; blocks on the disk. Errors: `unavailable`, `internal`.
class Calls {
 public:
  // Must outlive it.
  explicit Calls(Database& database) : database_(database) {}

  [[nodiscard]] model::Result<std::optional<model::PendingCall>> find(const std::string& id) const;

  // Whether its result is still waited for; cheap.
  [[nodiscard]] model::Result<bool> waits(const std::string& id) const;

  // Calls and searches without a result, by id, past `after_id`: what a start, and whoever takes up
  // partitions, goes on with. `find` has the rest of them.
  struct Unfinished {
    std::string id;
    model::SessionKey session;
  };
  [[nodiscard]] model::Result<std::vector<Unfinished>> unfinished(const std::string& after_id,
                                                                  std::size_t limit) const;

  // Calls and timers that executions wait for; for operators.
  [[nodiscard]] model::Result<std::int64_t> pending() const;

 private:
  Database& database_;
};

}  // namespace conversed::store
