#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/effects.h"
#include "store/model/result.h"

namespace conversed::store {

// The pending outputs of one session, oldest first.
struct DueDelivery {
  model::SessionKey key{};
  model::Timestamp due_at{};  // the epoch: due at once, no try has failed
  int attempts = 0;           // of the first output
  // `created_at` is by the clock of timers. Empty: delivered meanwhile, or `wanted` refused the
  // session.
  std::vector<model::Output> outputs{};
  std::int64_t session = 0;  // its row, which orders sessions with the same due time
  bool damaged = false;      // its outputs can't be read
};

// An Endpoint with pending outputs. `due_at`: of its first session.
struct DueEndpoint {
  std::string endpoint_id;
  std::string project_id;
  model::Timestamp due_at{};
};

// The outputs of an input's execution, in order. Inside a transaction; throws SqlError.
[[nodiscard]] std::vector<model::Output> outputs_of_input(Connection& connection,
                                                          const model::SessionKey& key,
                                                          const std::string& input_id);

// Outputs and their delivery. Thread-safe; blocks on the disk. Errors: `unavailable`, `internal`.
//
// All rows of a session in `deliveries` have the due time and the attempts of its oldest pending
// output, so a retry holds back the outputs that follow.
// Kept by: OutboxTest.SessionsOldestOutputComesFirstAndLeavesWhenDelivered,
// OutboxTest.RescheduledSessionWaitsWithAllThatFollows.
class Outbox : Rows {
 public:
  using Rows::Rows;

  // Outputs past `after_seq`, in order, at most `limit`. Empty for an unknown session.
  [[nodiscard]] model::Result<std::vector<model::Output>> outputs(const model::SessionKey& key,
                                                                  std::int64_t after_seq,
                                                                  std::size_t limit) const;

  // The number of the session's last output, 0 if it has none. A higher number belongs to an
  // earlier session that erasure or retention has removed: numbers begin again at 1, so marks of
  // deliveries compare the output's id, too.
  // Kept by: OutboxTest.TheLastNumberShowsThatTheSessionBeganAnew.
  [[nodiscard]] model::Result<std::int64_t> last_seq(const model::SessionKey& key) const;

  [[nodiscard]] model::Result<std::vector<model::Output>> outputs_of_input(
      const model::SessionKey& key, const std::string& input_id) const;

  // At most `sessions` sessions of the Endpoint that are due at `now`, earliest first, each with at
  // most `outputs_each` outputs, or with none if `wanted` refuses the session (empty: all are
  // wanted). `wanted` gets the bytes of the outputs that the page has already. The page begins
  // behind `after`, the last entry of the previous page. The caller knows which deliveries are
  // under way. All due times use the clock of timers.
  struct Page {
    std::vector<DueDelivery> sessions;
    std::optional<model::Timestamp> next;  // the next due time, if the page is not full
  };
  using Wanted = std::function<bool(const model::SessionKey&, std::size_t bytes)>;
  [[nodiscard]] model::Result<Page> due(const std::string& endpoint_id, model::Timestamp now,
                                        std::size_t sessions, std::size_t outputs_each,
                                        const DueDelivery* after = nullptr,
                                        const Wanted& wanted = {}) const;

  // The session's pending outputs, at most `outputs_each`. None: it has no pending output.
  [[nodiscard]] model::Result<std::optional<DueDelivery>> pending_of(
      const model::SessionKey& key, std::size_t outputs_each) const;

  // The Endpoints behind this id that have pending outputs, in the order of their ids.
  [[nodiscard]] model::Result<std::vector<DueEndpoint>> endpoints(const std::string& after,
                                                                  std::size_t limit) const;

  // Makes sessions that are due after `latest` due at `now`. No retry waits that long, so the clock
  // was set back while no daemon ran.
  [[nodiscard]] model::Result<void> bring_forward(model::Timestamp latest, model::Timestamp now);

  // Marks a follow-up's output as being delivered: a message of the user no longer withdraws it.
  // Does not block. `done` is called on the Committer's thread, with `not_found` if the output was
  // withdrawn before.
  void begin_delivery(const model::SessionKey& key, const model::Output& output,
                      Committer::WriteDone done);
  // Marks the output as delivered. A missing row is no error: the output was marked before, or
  // erased. `attempts`: failed tries of this output. `marked`: see Committer::mark. This and the
  // next two functions add a step to the receipt of the output's input.
  using Step = std::variant<std::monostate, ReceiptMark, PlainDelivery>;
  void delivered(const model::SessionKey& key, const model::Output& output, int attempts,
                 std::function<void()> marked = {}, Step step = {});
  // A try of the session's oldest pending output has failed. All outputs of the session wait until
  // `due_at`, by the clock of timers, unless the output was dropped meanwhile. `attempts`: tries so
  // far, above 0.
  void reschedule(const model::SessionKey& key, const model::Output& output,
                  model::Timestamp due_at, int attempts, std::function<void()> marked = {},
                  std::optional<ReceiptMark> row = {});
  // Gives up a pending output: it becomes a dead letter, and the session's next output is due at
  // once. `failed_now`: a try has just failed, which the store does not count yet. Does not block.
  // `done` is called on the Committer's thread, with `not_found` if the output is not pending.
  void give_up(const model::SessionKey& key, const model::Output& output, const std::string& reason,
               bool failed_now, Committer::WriteDone done, std::optional<ReceiptMark> row = {});

  // Reads `limit` outputs behind a row (0: from the first), oldest first. Deletes the outputs among
  // them that are older than `before` and not pending.
  struct Pruned {
    std::int64_t removed = 0;
    std::optional<std::int64_t> last_row;  // the last row read; none: all other rows are younger
  };
  [[nodiscard]] model::Result<Pruned> prune(model::Timestamp before, std::int64_t after_row,
                                            std::size_t limit);
};

}  // namespace conversed::store
