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

// Injects that wait for their time. The row's claim is that of the next event: the transaction of
// the event's effects (SessionCommit::schedules_fired) deletes the row, or moves it to its next
// time under another claim, so each time comes once, however often the event is appended.
// Thread-safe; blocks on the disk. Errors: `not_found` (also for what is another project's),
// `unavailable`, `internal`.
class Schedules {
 public:
  // Both must outlive it.
  Schedules(Database& database, Committer& committer)
      : database_(database), committer_(committer) {}

  // If the key stands for an earlier answer, that is returned and nothing is done; `conflict` if
  // that was with another body.
  [[nodiscard]] model::Result<std::optional<KeptAnswer>> create(
      const model::Schedule& schedule, const std::optional<KeyedAnswer>& keyed);

  struct Row {
    std::int64_t n = 0;  // ascends with time; for paging
    model::Schedule schedule;
  };
  // The oldest first, past `after`.
  [[nodiscard]] model::Result<std::vector<Row>> list(const std::string& project_id,
                                                     std::int64_t after, std::size_t limit) const;
  [[nodiscard]] model::Result<model::Schedule> get(const std::string& project_id,
                                                   const std::string& id) const;

  // What waits for the event with this claim, if it is still to come.
  [[nodiscard]] model::Result<std::optional<model::Schedule>> by_claim(
      const std::string& claim) const;

  // Those that recur, the oldest first, past `after`: of each its rule and where it stands.
  [[nodiscard]] model::Result<std::vector<Row>> recurring(std::int64_t after,
                                                          std::size_t limit) const;

  // Those that still stand where they are said to come at an earlier time, under the claim that
  // they have: theirs is the only event that will come.
  struct Sooner {
    model::Schedule schedule;
    model::Timestamp due_at{};
  };
  [[nodiscard]] model::Result<void> bring_forward(const std::vector<Sooner>& schedules);

  // Nothing comes any more: what has come to the log already is without effect.
  [[nodiscard]] model::Result<void> cancel(const std::string& project_id, const std::string& id);

  // Another time or rule; returns the schedule as it is then. What had come to the log by the old
  // one and has not run is without effect.
  struct When {
    std::string cron;  // empty: once
    std::string timezone;
    model::Timestamp due_at{};
  };
  [[nodiscard]] model::Result<model::Schedule> reschedule(const std::string& project_id,
                                                          const std::string& id, const When& when);

 private:
  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store
