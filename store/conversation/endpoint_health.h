#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::store {

// How the webhook of an Endpoint fails. All times are by the clock of timers.
struct EndpointFailure {
  std::string endpoint_id;
  std::optional<model::Timestamp> failing_since{};  // none: it works again
  std::int64_t failures = 0;                        // since then
  int last_status = 0;                              // HTTP; 0: there was no answer
  std::string last_error{};
  model::Timestamp last_at{};
  // The last pause; see `paused`.
  std::optional<model::Timestamp> paused_since{};
  std::optional<model::Timestamp> resumed_at{};
  model::Timestamp next_probe{};  // while it is paused

  [[nodiscard]] bool paused() const { return paused_since && !resumed_at; }
  // The same with times by the wall clock. `offset`: of the clock of timers.
  [[nodiscard]] EndpointFailure by_wall_clock(std::chrono::milliseconds offset) const;
};

// Endpoints whose webhooks fail. An Endpoint that works has no row, unless it was paused lately.
// Thread-safe; blocks on the disk. Errors: `not_found`, `unavailable`, `internal`.
class EndpointHealth : Rows {
 public:
  using Rows::Rows;

  // The first `limit` Endpoints behind this id.
  [[nodiscard]] model::Result<std::vector<EndpointFailure>> list(const std::string& after,
                                                                 std::size_t limit) const;
  [[nodiscard]] model::Result<std::optional<EndpointFailure>> find(
      const std::string& endpoint_id) const;

  // Ends the pause, and tells all daemons: the Endpoint's outputs are due now, as if it had not
  // failed. `conflict` unless it is paused.
  [[nodiscard]] model::Result<void> resume(const std::string& endpoint_id);

  // Deletes the rows of Endpoints that have no pending outputs, and of those that work and were
  // resumed before this time. Returns the Endpoints.
  [[nodiscard]] model::Result<std::vector<std::string>> forget(model::Timestamp resumed_before);

  // Marks of the Deliverer; they do not block. A failed try, with the caller's view of the
  // Endpoint: the row keeps the earliest `failing_since` and counts all failures. A view from
  // before the Endpoint was resumed pauses nothing.
  // Kept by: EndpointHealthTest.FailureFromBeforeTheResumePausesNothing.
  void failed(const EndpointFailure& failure);
  // A try succeeded at `now`.
  void works(const std::string& endpoint_id, model::Timestamp now);
};

}  // namespace conversed::store
