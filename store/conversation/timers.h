#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::store {

// What falls due some time: timers of executions, follow-ups and schedules, each in a table of its
// own, in one order. Only when and which, so that no damage to the rest of a row can hide it;
// Calls, FollowUps and Schedules have the rest. Thread-safe; blocks on the disk. Errors:
// `unavailable`, `internal`.
class Timers {
 public:
  // Both must outlive it.
  Timers(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  struct Due {
    model::Timestamp at{};
    model::Claim claim;  // `timer`, `follow_up` or `schedule`
  };
  struct Page {
    std::vector<Due> timers;
    std::optional<model::Timestamp> next;  // behind a page that is not full: the first not yet due
  };
  // Those that are due at `now` and whose events are not in the log, the longest due first, by due
  // time and the claim's id; at most `limit`. Goes on behind `after`, the last entry of a page. All
  // by the clock of timers: that is `offset` ahead of the clock that schedules go by.
  [[nodiscard]] model::Result<Page> due(model::Timestamp now, std::chrono::milliseconds offset,
                                        std::size_t limit, const Due* after = nullptr) const;

  // The events of these are in the log, or their rows can't be read. One that was put off since
  // keeps its new time. Does not block; `marked` is called on the Committer's thread once that is
  // durable, and never if the Committer stops before.
  void appended(std::vector<Due> timers, std::function<void()> marked);

  // The log is another one from now on: neither the events of timers nor the results of calls are
  // in it.
  [[nodiscard]] model::Result<void> log_lost();

  // How far the clock of timers is ahead of the wall clock; what was kept last, at first 0.
  [[nodiscard]] model::Result<std::chrono::milliseconds> offset() const;
  [[nodiscard]] model::Result<void> keep_offset(std::chrono::milliseconds offset);

 private:
  Database& database_;
  Committer& committer_;
};

// The same as `Timers::offset`, where a connection is at hand; throws SqlError.
[[nodiscard]] std::chrono::milliseconds timer_offset(Connection& connection);

}  // namespace conversed::store
