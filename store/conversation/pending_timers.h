#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::store {

// Everything that waits for its time, of all kinds in one order, as operators see it: listed until
// its event is in the log, taken back and put off. A row is the claim of its event, so what was
// taken back is without effect though its event may be in the log already. Thread-safe; blocks on
// the disk. Errors beside those named: `not_found`, `unavailable`, `internal`.
class PendingTimers {
 public:
  // Both must outlive it.
  PendingTimers(Database& database, Committer& committer)
      : database_(database), committer_(committer) {}

  enum class Kind : std::uint8_t {
    journey,    // a follow-up of the project's journey
    follow_up,  // one that a Node asked for
    sleep,      // an execution goes on then
    question,   // until then a question waits for its answer
    schedule,   // a scheduled inject
  };

  // Where one stands in the order: by due time, on the clock of timers, and claim.
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
    std::optional<Place> next;  // goes on behind it; nothing: there are no more
  };
  // Those behind `after`, at most `limit`, which are due first. A page may hold fewer, even none,
  // though there are more: so many of other projects and kinds are looked at, and no more.
  [[nodiscard]] model::Result<Page> list(const Filter& filter, const Place& after,
                                         std::size_t limit) const;

  // Of whatever project.
  [[nodiscard]] model::Result<Row> get(const std::string& id) const;

  // Nothing comes of it any more. A question waits on for as long as it takes. `conflict` for a
  // sleep: without its timer the execution would stand still for ever.
  [[nodiscard]] model::Result<void> cancel(const std::string& id);

  // Another time by the wall clock; returns it as it is then. What fell due before, and is in the
  // log, comes in any case. `conflict` for a schedule, which has a rule and a class of its own;
  // `invalid_argument` for a follow-up that would have expired by then.
  [[nodiscard]] model::Result<Row> reschedule(const std::string& id, model::Timestamp due_at);

 private:
  Database& database_;
  Committer& committer_;
};

[[nodiscard]] std::string_view to_string(PendingTimers::Kind kind);
[[nodiscard]] std::optional<PendingTimers::Kind> timer_kind_from(std::string_view text);
// All of them, as `to_string` has them.
[[nodiscard]] std::vector<std::string_view> timer_kinds();

}  // namespace conversed::store
