#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/commit/rows.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::store {

// All timers, of every kind in one order, as operators see them. A timer is listed until its event
// is in the log; operators cancel and reschedule it. Thread-safe; blocks on the disk. Errors beside
// those named: `not_found`, `unavailable`, `internal`.
//
// A row is the claim of its event, so a cancelled timer has no effect even if its event is in the
// log already.
// Kept by: PendingTimersTest.AreTakenBackWithTheirClaims.
class PendingTimers : Rows {
 public:
  using Rows::Rows;

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
    std::string id;  // the claim's; of a schedule its own
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
    std::optional<Place> next;  // the next page begins behind it; none: there is none
  };
  // The first `limit` timers behind `after`. A page may hold fewer, even none, although more
  // follow: the number of rows read is bounded, and they may be of other projects and kinds. An
  // index by project would cost each follow-up that is armed.
  [[nodiscard]] model::Result<Page> list(const Filter& filter, const Place& after,
                                         std::size_t limit) const;

  // Of any project.
  [[nodiscard]] model::Result<Row> get(const std::string& id) const;

  // Deletes the timer. A question then waits without limit. `conflict` for a sleep: its execution
  // would never go on.
  [[nodiscard]] model::Result<void> cancel(const std::string& id);

  // Sets another time by the wall clock and returns the changed timer. An event that is in the log
  // already comes in any case. `conflict` for a schedule: use Schedules. `invalid_argument` for a
  // follow-up that expires before that time.
  [[nodiscard]] model::Result<Row> reschedule(const std::string& id, model::Timestamp due_at);
};

[[nodiscard]] std::string_view to_string(PendingTimers::Kind kind);
[[nodiscard]] std::optional<PendingTimers::Kind> timer_kind_from(std::string_view text);
// The names of all kinds.
[[nodiscard]] std::vector<std::string_view> timer_kinds();

}  // namespace conversed::store
