#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::store {

// Timers of all kinds: three tables, read in one order. A row is the claim of its event: the Turn
// that takes the event deletes the row, or moves a schedule to its next time. So a cancelled timer
// has no effect, even if its event is already in the log. Thread-safe; blocks on the disk. Further
// errors: `unavailable`, `internal`. Kept by: PendingTimersTest.AreCancelledWithTheirClaims.
class Timers : Rows {
 public:
  using Rows::Rows;

  // ---- For the scheduler. Only due time and claim are read, so that damage in other columns hides
  // no timer.
  struct Due {
    model::Timestamp at{};
    model::Claim claim;  // `timer`, `follow_up` or `schedule`
  };
  struct DuePage {
    std::vector<Due> timers;
    std::optional<model::Timestamp> next;  // the next due time, if the page is not full
  };
  // At most `limit` timers that are due at `now` and whose events are not in the log, by due time
  // and the claim's id. The page begins behind `after`, the last entry of the previous page. All
  // times use the clock of timers, which is `offset` ahead of the clock of schedules.
  [[nodiscard]] model::Result<DuePage> due(model::Timestamp now, std::chrono::milliseconds offset,
                                           std::size_t limit, const Due* after = nullptr) const;

  // Marks timers whose events are in the log, or whose rows can't be read. A timer that was
  // rescheduled meanwhile keeps its new time. Does not block. `marked` is called on the Committer's
  // thread once the marks are durable, but not if the Committer stops before.
  void appended(std::vector<Due> timers, std::function<void()> marked);

  // Clears the marks of timers and calls: a new log, without their events, replaces the old log.
  [[nodiscard]] model::Result<void> log_lost();

  // The stored offset of the clock of timers to the wall clock; at first 0.
  [[nodiscard]] model::Result<std::chrono::milliseconds> offset() const;
  [[nodiscard]] model::Result<void> keep_offset(std::chrono::milliseconds offset);

  // Whether the follow-up's row exists. It is deleted when the follow-up runs, or when a message of
  // the user withdraws it.
  [[nodiscard]] model::Result<bool> follow_up_waits(const std::string& id) const;
  [[nodiscard]] model::Result<std::optional<model::FollowUp>> follow_up(
      const std::string& id) const;

  // ---- For operators. A timer is listed until its event is in the log.
  enum class Kind : std::uint8_t {
    journey,    // a follow-up of the project's journey
    follow_up,  // a follow-up of a Node
    sleep,      // resumes an execution
    question,   // ends a question's wait for its answer
    schedule,   // a scheduled inject
  };

  // The sort keys: due time by the clock of timers, and claim.
  struct Place {
    model::Timestamp due{};
    std::string claim;
    bool operator==(const Place&) const = default;
  };
  struct Row {
    Kind kind = Kind::journey;
    std::string id;  // of the claim; for a schedule its own id
    model::SessionKey session;
    model::Timestamp due_at{};  // by the wall clock
    Place place;
  };

  struct Filter {
    std::string project_id;
    std::optional<Kind> kind{};
    std::optional<model::SessionKey> session{};  // of the project
  };
  struct Page {
    std::vector<Row> rows;
    std::optional<Place> next;  // the next page begins behind it; none: this is the last page
  };
  // The first `limit` timers behind `after`. A page may hold fewer timers, even none, although more
  // follow: the number of rows read is bounded, and they may be of other projects and kinds. An
  // index by project would make each new follow-up write more.
  [[nodiscard]] model::Result<Page> list(const Filter& filter, const Place& after,
                                         std::size_t limit) const;

  // A timer of any project. Error: `not_found`.
  [[nodiscard]] model::Result<Row> get(const std::string& id) const;

  // Deletes the timer. A question then waits without limit. Errors: `not_found`; `conflict` for a
  // sleep, whose execution would never go on.
  [[nodiscard]] model::Result<void> cancel(const std::string& id);

  // Sets another time by the wall clock and returns the changed timer. An event that is already in
  // the log fires anyway. `conflict` for a schedule: use Schedules, and for a follow-up that
  // expires before that time.
  [[nodiscard]] model::Result<Row> reschedule(const std::string& id, model::Timestamp due_at);
};

[[nodiscard]] std::string_view to_string(Timers::Kind kind);
[[nodiscard]] std::optional<Timers::Kind> timer_kind_from(std::string_view text);
// The names of all kinds.
[[nodiscard]] std::vector<std::string_view> timer_kinds();

// As Timers::offset, by the caller's connection. Throws SqlError.
[[nodiscard]] std::chrono::milliseconds timer_offset(Connection& connection);

}  // namespace conversed::store
