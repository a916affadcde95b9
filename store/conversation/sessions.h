#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/result.h"
#include "store/model/session.h"

namespace conversed::store {

// A line of the operators' list.
struct SessionSummary {
  model::SessionKey key;
  std::int64_t version = 0;
  model::Timestamp started_at{};
  model::Timestamp last_activity_at{};
  bool busy = false;
  std::int64_t inbox_size = 0;
  std::int64_t last_output_seq = 0;
  std::int64_t row = 0;  // for the next page
};

// Sessions, their inboxes and the users' profiles, as committed. Thread-safe; blocks on the disk.
// Errors: `unavailable` if the database can't be read, `internal` if what is stored is damaged.
class Sessions {
 public:
  // Both must outlive it.
  Sessions(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  [[nodiscard]] model::Result<std::optional<model::Session>> load(
      const model::SessionKey& key) const;

  // A profile that was never written has version 0 and no data.
  [[nodiscard]] model::Result<model::Profile> profile(const std::string& project_id,
                                                      const std::string& user_id) const;

  // Session and profile by one connection: what a Turn needs. What can't be read is left empty, and
  // `damage` says so: no Turn may run on it.
  struct Loaded {
    std::optional<model::Session> session;
    model::Profile profile;
    std::string damage;
    bool execution_lost = false;  // the session has one, which can't be read
  };
  [[nodiscard]] model::Result<Loaded> load_with_profile(const model::SessionKey& key) const;

  // The oldest first, at most `limit`.
  [[nodiscard]] model::Result<std::vector<InboxEvent>> inbox(const model::SessionKey& key,
                                                             std::size_t limit) const;

  // Newest first; `before_row` 0 begins. Restricted to a project.
  [[nodiscard]] model::Result<std::vector<SessionSummary>> list(const std::string& project_id,
                                                                std::int64_t before_row,
                                                                std::size_t limit) const;

  // What tells where sessions of a project stand; newest first, `before_row` 0 begins. What can't
  // be read is left empty.
  struct Place {
    model::SessionKey key;
    model::Timestamp last_activity_at{};
    nlohmann::json flow_state;
    std::optional<model::Execution> execution;
    std::int64_t row = 0;  // for the next page
  };
  [[nodiscard]] model::Result<std::vector<Place>> places(const std::string& project_id,
                                                         std::int64_t before_row,
                                                         std::size_t limit) const;

  // Inboxes that are not empty, by row: at most `limit` of those behind `after_row` (0 begins).
  struct Inbox {
    model::SessionKey key;
    std::int64_t size = 0;
    std::int64_t row = 0;  // for the next page
  };
  [[nodiscard]] model::Result<std::vector<Inbox>> inboxes(std::int64_t after_row,
                                                          std::size_t limit) const;

  // Sessions that have something to do when somebody takes them up, which comes with no event:
  // those that are not busy and have an inbox. By row, as above.
  [[nodiscard]] model::Result<std::vector<Inbox>> to_drain(std::int64_t after_row,
                                                           std::size_t limit) const;

  // Ends the conversation: context, Flow state and execution are emptied, pending calls and timers
  // lose their claim. The execution's input has a failure for an answer, unless it is cut. Outputs
  // and their numbers stay, and so does what waits in the inbox. `committed` is called as by
  // Writer::on_commit, with the input of the execution that is over; empty: there was none, or it
  // can't be read. `not_found` if there is no such session.
  using ResetDone = std::function<void(const std::string& ended_input)>;
  [[nodiscard]] model::Result<void> reset(const model::SessionKey& key,
                                          const ResetDone& committed = {});

  // Looks at the `limit` sessions behind a row (0 begins) and deletes those in which nothing has
  // happened since `before`, nothing runs or waits, and of which no output is kept.
  struct Pruned {
    std::int64_t removed = 0;
    std::optional<std::int64_t> last_row;  // that was looked at; none: there are no more
  };
  [[nodiscard]] model::Result<Pruned> prune(model::Timestamp before, std::int64_t after_row,
                                            std::size_t limit);

  // Events that wait in inboxes; for operators.
  [[nodiscard]] model::Result<std::int64_t> in_inboxes() const;

  // Where the log was when the store last committed: the highest offset of each epoch and
  // partition.
  [[nodiscard]] model::Result<std::vector<model::Position>> highest_positions() const;

 private:
  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store
