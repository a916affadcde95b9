#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/result.h"

namespace conversed::store {

enum class DeadLetterState : std::uint8_t { fresh, replayed, discarded };
[[nodiscard]] std::string_view to_string(DeadLetterState state);  // "new", "replayed", "discarded"

struct DeadLetter {
  std::string id;
  std::int64_t row = 0;  // ascends with time; for paging
  model::SessionKey key;
  InboxEvent event;                        // of an event; empty for an output
  std::optional<std::int64_t> output_seq;  // set if an output could not be delivered
  std::string reason;
  DeadLetterState state = DeadLetterState::fresh;
  model::Timestamp created_at{};
};

// Events that could not be processed and outputs that could not be delivered. An event is replayed
// by appending it again with the claim {dead_letter, id}: the Turn that takes it sets the state.
// Thread-safe; blocks on the disk. Errors: `not_found` (also for rows of another project),
// `unavailable`, `internal`.
class DeadLetters : Rows {
 public:
  using Rows::Rows;

  // Lists dead letters behind `after_row`, oldest first.
  // Empty `reason`: of any reason.
  [[nodiscard]] model::Result<std::vector<DeadLetter>> list(const std::string& project_id,
                                                            std::optional<DeadLetterState> state,
                                                            std::int64_t after_row,
                                                            std::size_t limit,
                                                            const std::string& reason = {}) const;

  // Dead letters of one state, reason and kind.
  struct Group {
    std::string reason;
    bool of_outputs = false;
    std::int64_t count = 0;
    model::Timestamp first{};  // when the oldest and the newest of them were made
    model::Timestamp last{};
  };
  // The `limit` largest groups among the project's newest `examined` dead letters.
  [[nodiscard]] model::Result<std::vector<Group>> groups(const std::string& project_id,
                                                         DeadLetterState state,
                                                         std::size_t examined,
                                                         std::size_t limit) const;
  [[nodiscard]] model::Result<DeadLetter> get(const std::string& project_id,
                                              const std::string& id) const;

  // The dead letter with this id, in any project; or one of this event and of the calls and timers
  // of its execution; or one of this output.
  [[nodiscard]] model::Result<std::optional<DeadLetter>> of(const std::string& id) const;

  // `conflict` unless the dead letter is new.
  [[nodiscard]] model::Result<void> discard(const std::string& project_id, const std::string& id);

  // Makes an undelivered output pending again. `conflict` unless the dead letter is new,
  // `invalid_argument` if it is an event. `committed` is called as by Writer::on_commit.
  [[nodiscard]] model::Result<void> replay_output(const std::string& project_id,
                                                  const std::string& id,
                                                  const std::function<void()>& committed = {});

  // The number of new dead letters, at most `most_counted`.
  [[nodiscard]] model::Result<std::int64_t> count_new() const;

  // When the oldest new dead letter was made; for metrics.
  [[nodiscard]] model::Result<std::optional<model::Timestamp>> oldest_new() const;

  // Deletes up to `limit` dead letters that are older than `before`, oldest first, in any state.
  // Returns their number.
  [[nodiscard]] model::Result<std::int64_t> prune(model::Timestamp before, std::size_t limit);
};

}  // namespace conversed::store
