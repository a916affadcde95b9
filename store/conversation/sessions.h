#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/result.h"
#include "store/model/session.h"

namespace conversed::store {

// One entry of the operators' list.
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

// Which sessions a list has.
struct SessionFilter {
  std::string endpoint_id{};  // empty: of all Endpoints
  std::string user_id{};      // empty: of all users
  std::string text{};         // is in one of its outputs, in any case of A to Z
  std::optional<bool> busy{};
};

// Sessions, their inboxes and the users' profiles, as committed. Thread-safe; blocks on the disk.
// Errors: `unavailable` if the database can't be read, `internal` if stored data is damaged.
class Sessions : Rows {
 public:
  using Rows::Rows;

  [[nodiscard]] model::Result<std::optional<model::Session>> load(
      const model::SessionKey& key) const;

  // Shows a watcher whether a session has changed. `id`, a short text of ASCII, differs after each
  // change of the session, or of the tries of its first delivery or of its call.
  struct Mark {
    std::string id;
    std::int64_t version = 0;
    // When the first delivery or the call is tried next, by the clock of timers. None: none waits.
    std::optional<model::Timestamp> next_try{};
  };
  [[nodiscard]] model::Result<std::optional<Mark>> mark(const model::SessionKey& key) const;

  // Loads session and profile for a Turn by one connection. A profile that was never written has
  // version 0 and no data. Damaged parts are left empty, and `damage` names the damage: no Turn may
  // run on the session.
  struct Loaded {
    std::optional<model::Session> session;
    model::Profile profile;
    std::string damage;
    bool execution_lost = false;  // the session's execution can't be read
    // If no other daemon has changed the session: this one has told its Deliverer of all outputs.
    bool outputs_are_known = false;
  };
  [[nodiscard]] model::Result<Loaded> load_with_profile(const model::SessionKey& key) const;
  // The same for several sessions, in their order; with PostgreSQL by one statement.
  [[nodiscard]] model::Result<std::vector<Loaded>> load_with_profiles(
      std::span<const model::SessionKey> keys) const;

  // The first `limit` events, oldest first.
  [[nodiscard]] model::Result<std::vector<InboxEvent>> inbox(const model::SessionKey& key,
                                                             std::size_t limit) const;

  // An event in an inbox.
  struct InInbox {
    model::SessionKey key;
    std::int64_t ahead = 0;    // events before it
    std::string first_ahead;   // the first of them; empty: none
    model::Timestamp since{};  // when it was accepted; the epoch: it can't be read
  };
  [[nodiscard]] model::Result<std::optional<InInbox>> in_inbox(const std::string& event_id) const;

  // Sessions of a project, newest first, from below `before_row`; 0: from the newest. Examines at
  // most `examined_sessions` sessions, or `examined_for_text` of a user or in a search for a text.
  // So a page may be shorter than `limit` and have a next one.
  static constexpr std::size_t examined_sessions = 20'000;
  static constexpr std::size_t examined_for_text = 1'000;
  struct Page {
    std::vector<SessionSummary> rows;
    std::optional<std::int64_t> next;  // the `before_row` of the next page
  };
  [[nodiscard]] model::Result<Page> list(const std::string& project_id, const SessionFilter& filter,
                                         std::int64_t before_row, std::size_t limit) const;

  // The places in their Flows of a project's sessions, newest first, from below `before_row`; 0:
  // from the newest. Damaged parts are left empty.
  struct Place {
    model::SessionKey key;
    model::Timestamp last_activity_at{};
    nlohmann::json flow_state{};
    std::optional<model::Execution> execution{};
    std::int64_t row = 0;  // for the next page
  };
  [[nodiscard]] model::Result<std::vector<Place>> places(const std::string& project_id,
                                                         std::int64_t before_row,
                                                         std::size_t limit) const;

  // The Flow states of these rows' sessions, as far as they have no execution. A damaged one is
  // left out.
  [[nodiscard]] model::Result<std::map<std::int64_t, nlohmann::json>> flow_states_of_idle(
      const std::vector<std::int64_t>& rows) const;

  // Inboxes with events, by row, at most `limit` behind `after_row` (0: from the first).
  // `to_drain`: only inboxes of sessions that are not busy. No event wakes these sessions, so the
  // owner of their partition runs them when it takes the partition up.
  enum class Which : std::uint8_t { all, to_drain };
  struct Inbox {
    model::SessionKey key;
    std::int64_t size = 0;
    std::int64_t row = 0;  // for the next page
  };
  [[nodiscard]] model::Result<std::vector<Inbox>> inboxes(Which which, std::int64_t after_row,
                                                          std::size_t limit) const;

  // Ends the conversation in one transaction: empties context, Flow state and execution, and
  // deletes the claims of pending calls and timers. The answer of the execution's input becomes a
  // failure, unless the input is cut: then its client has an answer, and its key stays used.
  // Outputs, their numbers and the inbox stay. `committed` is called as by Writer::on_commit, with
  // the input of the ended execution. Empty: no execution ran, or it can't be read. `not_found` if
  // there is no such session. Kept by: SessionsTest.ResetTakesTheClaimsAwayAndKeepsTheNumbers,
  // SessionsTest.ResetEndsTheExecutionsInputAsFailed.
  using ResetDone = std::function<void(const std::string& ended_input)>;
  [[nodiscard]] model::Result<void> reset(const model::SessionKey& key,
                                          const ResetDone& committed = {});

  // Reads `limit` sessions behind a row (0: from the first). Deletes the sessions among them that
  // were last active before `before` and have no execution, no waiting events, follow-ups or calls,
  // no outputs and no receipts. Retention reads all sessions once a round: an index by activity
  // would cost every Turn.
  //
  // A session whose last record is not `finished` stays: the log may deliver the record again, and
  // only the session's position shows that it has had its effects.
  // Kept by: HousekeeperTest.SessionWhoseRecordMayComeAgainStays.
  using Finished = std::function<bool(const model::Position&)>;
  struct Pruned {
    std::int64_t removed = 0;
    std::optional<std::int64_t> last_row;  // the last row read; none: there are no more rows
  };
  // A session with a receipt stays. Those of events from `receipts_before` on are kept for sure.
  [[nodiscard]] model::Result<Pruned> prune(model::Timestamp before, const Finished& finished,
                                            model::Timestamp receipts_before,
                                            std::int64_t after_row, std::size_t limit);

  // The number of sessions, at most `most_counted`.
  [[nodiscard]] model::Result<std::int64_t> count() const;

  // The highest offset of each epoch and partition whose effects are in the store.
  [[nodiscard]] model::Result<std::vector<model::Position>> highest_positions() const;
};

}  // namespace conversed::store
