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
  // Whether a replay may have effects: nothing waits any more for the result of a call, or for the
  // time of a timer.
  [[nodiscard]] bool can_be_replayed() const;

  std::string id;
  std::int64_t row = 0;  // ascends with time; for paging
  model::SessionKey key;
  InboxEvent event;                        // of an event; empty for an output
  std::optional<std::int64_t> output_seq;  // set if an output could not be delivered
  int attempts = 0;                        // tries of the output that have failed
  std::string reason;
  std::string flow;  // whose Turn failed; empty: no Flow ran the event
  std::int64_t flow_version = 0;
  std::string node;
  DeadLetterState state = DeadLetterState::fresh;
  model::Timestamp created_at{};
};

// The event that replays a dead letter. It has a new id, and the dead letter as its claim, so two
// replays have one effect. `conflict` for an output, for an event that can't be read or that
// nothing waits for any more, and unless the dead letter is new.
[[nodiscard]] model::Result<model::Event> event_to_replay(const DeadLetter& letter,
                                                          model::Timestamp now);

// Events that could not be processed and outputs that could not be delivered. An event is replayed
// by appending it again with the claim {dead_letter, id}: the Turn that takes it sets the state.
// Thread-safe; blocks on the disk. Errors: `not_found` (also for rows of another project),
// `unavailable`, `internal`.
class DeadLetters : Rows {
 public:
  using Rows::Rows;

  // The empty members fit all dead letters of the project.
  struct Filter {
    std::string project_id;
    std::optional<DeadLetterState> state{};
    std::string reason{};
    std::string flow{};
    std::int64_t flow_version = 0;
    std::string node{};
    std::string endpoint_id{};                   // of the project
    std::optional<model::SessionKey> session{};  // of the project
    std::optional<model::Timestamp> created_from{};
    std::optional<model::Timestamp> created_before{};
  };
  struct Page {
    std::vector<DeadLetter> rows;
    std::optional<std::int64_t> next;  // the next page's `after_row`; none: this is the last page
  };
  // Lists dead letters behind `after_row`, oldest first. Examines `most_examined` rows, so a page
  // may be short, or empty, although there is a next one.
  // Kept by: OutboxTest.PageOfDeadLettersExaminesABoundedNumber.
  static constexpr std::int64_t most_examined = 2'000;
  [[nodiscard]] model::Result<Page> list(const Filter& filter, std::int64_t after_row,
                                         std::size_t limit) const;

  // The next part of a walk over a project's dead letters, oldest first.
  struct Window {
    std::vector<DeadLetter> letters;  // that fit the filter
    std::int64_t last = 0;            // the newest row examined; 0: the walk is over
  };
  // Examines `examined` rows behind `after_row`, up to `until_row`.
  [[nodiscard]] model::Result<Window> window(const Filter& filter, std::int64_t after_row,
                                             std::int64_t until_row, std::size_t examined) const;
  // The first and the last row of the project's dead letters; 0 and 0: there are none.
  struct Span {
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  [[nodiscard]] model::Result<Span> span(const std::string& project_id) const;

  // Dead letters of one state, reason, kind and place.
  struct Group {
    std::string reason;
    std::string flow;  // empty: no Flow ran the event
    std::int64_t flow_version = 0;
    std::string node;
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

  // `conflict` unless the dead letter is new. The receipt of an output's input names the user `by`,
  // here and below.
  [[nodiscard]] model::Result<void> discard(const std::string& project_id, const std::string& id,
                                            const std::string& by = {});
  [[nodiscard]] static model::Result<void> discard(Writer& writer, const std::string& project_id,
                                                   const std::string& id,
                                                   const std::string& by = {});

  // Makes an undelivered output pending again. `conflict` unless the dead letter is new and its
  // Endpoint exists, `invalid_argument` if it is an event. Only the first shard knows deleted
  // Endpoints. In another one the output becomes a delivery, and then a dead letter again.
  // `committed` is called as by Writer::on_commit.
  [[nodiscard]] model::Result<void> replay_output(const std::string& project_id,
                                                  const std::string& id,
                                                  const std::function<void()>& committed = {},
                                                  const std::string& by = {});
  [[nodiscard]] static model::Result<void> replay_output(Writer& writer,
                                                         const std::string& project_id,
                                                         const std::string& id,
                                                         const std::string& by = {});

  // The newest new dead letter's id; empty: there is none. Tells of a change that leaves the number
  // as it was.
  [[nodiscard]] model::Result<std::string> newest_new() const;

  // Deletes up to `limit` dead letters that are older than `before`, oldest first, in any state: as
  // many of each shard that has numbered some of the rows. Returns the highest of these numbers.
  [[nodiscard]] model::Result<std::int64_t> prune(model::Timestamp before, std::size_t limit);
};

}  // namespace conversed::store
