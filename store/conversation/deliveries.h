#pragma once

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

// Why a pending output is not delivered yet.
enum class DeliveryState : std::uint8_t {
  due,      // the next output of its session, and its time has come: it is sent, or about to be
  waiting,  // the next output of its session; a failed try put it off
  behind,   // an earlier output of its session goes first
  paused,   // the next output of its session; its Endpoint is paused
};
[[nodiscard]] std::string_view to_string(DeliveryState state);
[[nodiscard]] std::optional<DeliveryState> delivery_state_from(std::string_view text);
// The names of all states.
[[nodiscard]] std::vector<std::string_view> delivery_states();

// A pending output as operators see it. Times are by the wall clock.
struct PendingDelivery {
  std::string output_id;
  model::SessionKey key;
  std::int64_t seq = 0;  // of the output in its session
  DeliveryState state = DeliveryState::due;
  std::string first_output_id{};  // the session's output that goes first
  int attempts = 0;               // failed tries of that output
  model::Timestamp created_at{};
  std::optional<model::Timestamp> due_at{};  // of the next try; none: no try has failed
  std::string trace_id{};
};

// Pending outputs for operators. Outbox serves the Deliverer. Thread-safe; blocks on the disk.
// Errors: `not_found`, `unavailable`, `internal`.
//
// A session's deliveries keep their order: a retry makes the session's first output due, whichever
// output it names. A drop lets the next output follow at once, with a gap in the numbers.
// Kept by: DeliveriesTest.RetryOfALaterOutputMakesTheFirstOneDue,
// DeliveriesTest.DropOfALaterOutputLeavesTheWaitOfTheFirstOne.
class Deliveries : Rows {
 public:
  using Rows::Rows;

  // The order of lists: the Endpoint, its sessions by the due time of their first output, a
  // session's outputs by their number.
  struct Place {
    std::string endpoint_id;
    model::Timestamp due{};  // by the clock of timers
    std::int64_t session = 0;
    std::int64_t seq = 0;
    bool operator==(const Place&) const = default;
  };
  struct Filter {
    std::string project_id;
    // The ids of all Endpoints of the project. `list` needs them, unless `endpoint_id` or `session`
    // is set: the shard does not know the project's Endpoints.
    std::vector<std::string> endpoints{};
    std::optional<std::string> endpoint_id{};    // of the project
    std::optional<model::SessionKey> session{};  // of the project
    std::optional<DeliveryState> state{};
    std::optional<model::Timestamp> created_from{};
    std::optional<model::Timestamp> created_before{};
  };
  struct Page {
    std::vector<PendingDelivery> rows;
    std::optional<Place> next;  // the next page begins behind it; none: this is the last page
  };
  // The first `limit` deliveries behind `after`. A page may be shorter, even empty, although more
  // follow: the number of sessions read is bounded. A delivery that is put off between two pages
  // may be listed twice. `now`: by the clock of timers.
  // Kept by: DeliveriesTest.ListIsStepsThroughTheIndex.
  [[nodiscard]] model::Result<Page> list(const Filter& filter, const Place& after,
                                         std::size_t limit, model::Timestamp now) const;

  // The next part of a walk over the pending outputs of the sessions up to `until`, by session and
  // number: an order that retries do not change. `next`: the outputs behind it follow; none: the
  // walk is over.
  struct Step {
    std::int64_t session = 0;
    std::int64_t seq = 0;
  };
  struct Walked {
    std::vector<PendingDelivery> rows;  // that fit the filter
    std::optional<Step> next;
  };
  // Examines `examined` rows behind `after`.
  [[nodiscard]] model::Result<Walked> walk(const Filter& filter, const Step& after,
                                           std::int64_t until, std::size_t examined,
                                           model::Timestamp now) const;
  // The first and the last session with pending outputs that a walk has to visit; 0 and 0: none.
  struct Sessions {
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  [[nodiscard]] model::Result<Sessions> sessions(const Filter& filter) const;

  // A delivery of any project. `not_found` also for an output without a receipt whose session is
  // behind many newer ones.
  [[nodiscard]] model::Result<PendingDelivery> get(const std::string& output_id,
                                                   model::Timestamp now) const;

  // The id of a pending output of this input's execution.
  [[nodiscard]] model::Result<std::optional<std::string>> of_input(
      const std::string& input_id) const;

  // Makes the session of the output due now, and tells its owner. Finds the output by its id, key
  // and number. `not_found` unless it is pending.
  [[nodiscard]] model::Result<void> retry(const PendingDelivery& delivery);
  [[nodiscard]] static model::Result<void> retry(Writer& writer, const PendingDelivery& delivery);

  // Gives the output up for good: it is kept, with a discarded dead letter. Tells the owner of
  // its session. A POST under way ends. Finds the output as `retry`.
  // The receipt of the output's input names the user `by`.
  [[nodiscard]] model::Result<void> drop(const PendingDelivery& delivery,
                                         const std::string& by = {});
  [[nodiscard]] static model::Result<void> drop(Writer& writer, const PendingDelivery& delivery,
                                                const std::string& by = {});
};

}  // namespace conversed::store
