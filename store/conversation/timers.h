#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "store/commit/committer.h"
#include "store/commit/rows.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::store {

// Due times of executions' timers, follow-ups and schedules: three tables, read in one order. Only
// due time and claim are read, so no damage to the rest of a row hides it. Calls, FollowUps and
// Schedules have the rest. Thread-safe; blocks on the disk. Errors: `unavailable`, `internal`.
class Timers : Rows {
 public:
  using Rows::Rows;

  struct Due {
    model::Timestamp at{};
    model::Claim claim;  // `timer`, `follow_up` or `schedule`
  };
  struct Page {
    std::vector<Due> timers;
    std::optional<model::Timestamp> next;  // behind a page that is not full: the first not yet due
  };
  // At most `limit` timers that are due at `now` and whose events are not in the log, by due time
  // and the claim's id. The next page begins behind `after`, the last entry of this one. All times
  // are by the clock of timers, which is `offset` ahead of the clock of schedules.
  [[nodiscard]] model::Result<Page> due(model::Timestamp now, std::chrono::milliseconds offset,
                                        std::size_t limit, const Due* after = nullptr) const;

  // The events of these timers are in the log, or their rows can't be read. A timer that was
  // rescheduled since keeps its new time. Does not block. `marked` is called on the Committer's
  // thread once the marks are durable, and never if the Committer stops before.
  void appended(std::vector<Due> timers, std::function<void()> marked);

  // A new log replaces the old one: it holds neither the events of timers nor the results of calls.
  [[nodiscard]] model::Result<void> log_lost();

  // How far the clock of timers is ahead of the wall clock, as kept last; at first 0.
  [[nodiscard]] model::Result<std::chrono::milliseconds> offset() const;
  [[nodiscard]] model::Result<void> keep_offset(std::chrono::milliseconds offset);
};

// As Timers::offset, by the caller's connection; throws SqlError.
[[nodiscard]] std::chrono::milliseconds timer_offset(Connection& connection);

}  // namespace conversed::store
