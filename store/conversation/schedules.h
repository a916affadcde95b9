#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/idempotency/keyed_answers.h"
#include "store/model/result.h"
#include "store/model/schedule.h"

namespace conversed::store {

// Injects that wait for their time. The row holds the claim of the next event. The transaction of
// the event's effects (SessionCommit::schedules_fired) deletes the row, or moves it to its next
// time under another claim. So each time fires once, even if its event is appended repeatedly.
// Thread-safe; blocks on the disk. Errors: `not_found` (also for rows of another project),
// `unavailable`, `internal`.
class Schedules : Rows {
 public:
  using Rows::Rows;

  // Stores a schedule. If the key has a kept answer, returns that and changes nothing. `conflict`
  // if the key was used with another body, `not_found` if the Endpoint was deleted. Only the first
  // shard knows deleted Endpoints. Callers for another shard ask Assets before, and a schedule that
  // comes during the deletion may stay (store/assets/removal.h). A key that was used in one shard
  // is unknown in another.
  [[nodiscard]] model::Result<std::optional<KeptAnswer>> create(
      const model::Schedule& schedule, const std::optional<KeyedAnswer>& keyed);

  struct Row {
    std::int64_t n = 0;  // ascends with time; for paging
    model::Schedule schedule;
  };
  // Lists schedules behind `after`, oldest first.
  [[nodiscard]] model::Result<std::vector<Row>> list(const std::string& project_id,
                                                     std::int64_t after, std::size_t limit) const;
  [[nodiscard]] model::Result<model::Schedule> get(const std::string& project_id,
                                                   const std::string& id) const;

  // The schedule with this claim. None if its event has run or the schedule was changed.
  [[nodiscard]] model::Result<std::optional<model::Schedule>> by_claim(
      const std::string& claim) const;

  // Recurring schedules behind `after`, oldest first, without session and message.
  [[nodiscard]] model::Result<std::vector<Row>> recurring(std::int64_t after,
                                                          std::size_t limit) const;

  // Moves each schedule to an earlier time if its row still has the given run and time. The claim
  // stays, so an event that is already appended and the new one have effects only once.
  struct Sooner {
    model::Schedule schedule;
    model::Timestamp due_at{};
  };
  [[nodiscard]] model::Result<void> bring_forward(const std::vector<Sooner>& schedules);

  // Deletes the schedule. An event that is in the log already has no effect.
  [[nodiscard]] model::Result<void> cancel(const std::string& project_id, const std::string& id);

  // Sets another time or rule and returns the changed schedule. An earlier event that is in the log
  // and has not run has no effect.
  struct When {
    std::string cron;  // empty: the schedule fires once
    std::string timezone;
    model::Timestamp due_at{};
  };
  [[nodiscard]] model::Result<model::Schedule> reschedule(const std::string& project_id,
                                                          const std::string& id, const When& when);
};

}  // namespace conversed::store
