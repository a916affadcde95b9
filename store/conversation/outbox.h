#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/effects.h"
#include "store/model/result.h"

namespace conversed::store {

// What waits to be sent to one session's webhook, the oldest first.
struct DueDelivery {
  model::SessionKey key;
  model::Timestamp due_at{};  // the epoch: at once, since no try has failed
  int attempts = 0;           // of the first output
  // Their `created_at` is by the clock of timers. Empty: delivered meanwhile, or not wanted.
  std::vector<model::Output> outputs;
  std::int64_t session = 0;  // its row: the place among those due at the same time
  bool damaged = false;      // its outputs can't be read
};

// An Endpoint for which outputs wait, and when the first of its sessions is due.
struct DueEndpoint {
  std::string endpoint_id;
  std::string project_id;
  model::Timestamp due_at{};
};

// What an execution has said, in order. Inside a transaction; throws SqlError.
[[nodiscard]] std::vector<model::Output> outputs_of_input(Connection& connection,
                                                          const model::SessionKey& key,
                                                          const std::string& input_id);

// Outputs and their delivery. Thread-safe; blocks on the disk. Errors: `unavailable`, `internal`.
// Marks are the Committer's `delivered` and `reschedule`.
class Outbox {
 public:
  // Both must outlive it.
  Outbox(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  // Outputs past `after_seq`, in order, at most `limit`. Empty for an unknown session.
  [[nodiscard]] model::Result<std::vector<model::Output>> outputs(const model::SessionKey& key,
                                                                  std::int64_t after_seq,
                                                                  std::size_t limit) const;

  // The number of the session's last output, 0 if it has none. One that a client has and that is
  // beyond this is of a session that went by erasure or retention before.
  [[nodiscard]] model::Result<std::int64_t> last_seq(const model::SessionKey& key) const;

  [[nodiscard]] model::Result<std::vector<model::Output>> outputs_of_input(
      const model::SessionKey& key, const std::string& input_id) const;

  // Sessions of the Endpoint that are due at `now`, the longest due first: at most `sessions`, each
  // with at most `outputs_each`, or with none if `wanted` refuses it (empty: all are wanted). Goes
  // on behind a page by its last entry: pass that as `after`. What is on its way already is the
  // caller's to know. All due times are by the clock of timers.
  struct Page {
    std::vector<DueDelivery> sessions;
    std::optional<model::Timestamp> next;  // behind a page that is not full: the first not yet due
  };
  using Wanted = std::function<bool(const model::SessionKey&)>;
  [[nodiscard]] model::Result<Page> due(const std::string& endpoint_id, model::Timestamp now,
                                        std::size_t sessions, std::size_t outputs_each,
                                        const DueDelivery* after = nullptr,
                                        const Wanted& wanted = {}) const;

  // The Endpoints behind this id for which outputs wait, in the order of their ids.
  [[nodiscard]] model::Result<std::vector<DueEndpoint>> endpoints(const std::string& after,
                                                                  std::size_t limit) const;

  // What is due later than `latest` is due at `now`: no retry waits for so long, so that a clock
  // has been set back while no daemon ran.
  [[nodiscard]] model::Result<void> bring_forward(model::Timestamp latest, model::Timestamp now);

  // How many outputs wait for delivery; for metrics.
  [[nodiscard]] model::Result<std::int64_t> pending() const;

  // Gives a pending output up: it becomes a dead letter, and the session's next one is due at once.
  // Does not block; `done` is called on the Committer's thread: `not_found` if it is not pending.
  void give_up(const model::SessionKey& key, const model::Output& output, const std::string& reason,
               Committer::WriteDone done);

  // Looks at the `limit` outputs behind a row (0 begins), the oldest first, and deletes those from
  // before `before` that wait for nothing.
  struct Pruned {
    std::int64_t removed = 0;
    std::optional<std::int64_t> last_row;  // that was looked at; none: the rest is younger
  };
  [[nodiscard]] model::Result<Pruned> prune(model::Timestamp before, std::int64_t after_row,
                                            std::size_t limit);

 private:
  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store
