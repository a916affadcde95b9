#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/committer.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::store {

// What falls due some time: timers of executions, follow-ups and schedules, each in a table of its
// own, in one order. Only when and what, which no damage to the rest of a row can hide; Calls,
// FollowUps and Schedules have what there is to be appended. Thread-safe; blocks on the disk.
// Errors: `unavailable`, `internal`.
class Timers {
 public:
  // Both must outlive it.
  Timers(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  struct Due {
    model::Timestamp at{};
    model::Claim claim;  // `timer`, `follow_up` or `schedule`
  };
  // Those that are due first, behind (`after_due`, `after_id`), by due time and the claim's id. All
  // by the clock of timers: that is `offset` ahead of the wall clock, which schedules go by.
  [[nodiscard]] model::Result<std::vector<Due>> by_due(model::Timestamp after_due,
                                                       const std::string& after_id,
                                                       std::size_t limit,
                                                       std::chrono::milliseconds offset) const;

  // Tells all daemons, once the Writer's transaction is durable, that these fall due some time:
  // schedules by the wall clock, the others by the clock of timers. Does nothing where there is one
  // daemon at most.
  static void announce(Writer& writer, const std::vector<Due>& timers);
  static constexpr std::string_view topic = "timers";
  // What one of those announcements says (store/news.h); nothing: the store has to be looked at.
  [[nodiscard]] static std::optional<std::vector<Due>> announced(std::string_view payload);

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
