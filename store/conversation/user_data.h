#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/event.h"
#include "store/model/result.h"
#include "store/model/session_keys.h"

namespace conversed::store {

// A user of a project's Endpoints, by the userId that clients give.
struct UserOfProject {
  std::string project_id;
  std::string user_id;
};

// All data of one user of conversations: the profile, and of each session its state, outputs,
// inbox, pending calls and timers, receipts, kept answers and dead letters. Thread-safe; blocks on
// the disk.
//
// A new table or column that names a user, or holds the user's texts, must be added here.
// `secure_delete` overwrites deleted data in SQLite's file; Committer::run_alone empties the
// write-ahead log. Kept by: UserDataTest.ErasedUserLeavesNoTraceInTheFiles,
// UserDataTest.ExportHasEverythingOnceWhateverThePages.
class UserData : Rows {
 public:
  using Rows::Rows;

  // The begin of an export's next page: the kind of items, the current session, and the last
  // exported item.
  struct Place {
    std::size_t kind = 0;
    std::string scope{};
    std::string id{};

    // To a text without blanks, and back. None if the text is not a place.
    [[nodiscard]] std::string to_text() const;
    [[nodiscard]] static std::optional<Place> from_text(std::string_view text);
  };
  struct Page {
    std::vector<nlohmann::json> items;  // objects with their `kind`; times are Unix seconds
    std::optional<Place> next;
  };
  // The items behind `after`: at most `limit` (above 0), and about a megabyte. Errors:
  // `unavailable`, `internal`.
  [[nodiscard]] model::Result<Page> read_page(const UserOfProject& user, const Place& after,
                                              std::size_t limit) const;

  struct Erased {
    std::int64_t sessions = 0;
    std::int64_t outputs = 0;
    std::int64_t pending = 0;  // events in inboxes, calls, timers, follow-ups and schedules
    std::int64_t dead_letters = 0;
    std::int64_t answers = 0;
    std::int64_t profiles = 0;
    std::int64_t receipts = 0;  // events
  };
  struct EraseHooks {
    // Whether the log has committed the record at this position. Else the record would be read
    // again and make a new session.
    std::function<bool(const model::Position&)> finished;
    // Called on the Committer's thread after the commit that ended a session, with its inputs that
    // will never get an answer.
    std::function<void(const model::SessionKey&, const std::vector<std::string>& inputs)> ended;
    // Frees the Idempotency-Keys of these sessions in the log, if the log keeps keys. Called before
    // their answers are deleted: else a repeated key would wait for an answer that never comes.
    std::function<model::Result<void>(const model::KeyRange& sessions)> forget_keys{};
    // The user's sessions are in another shard. This one, the first, has other data of the user.
    bool lives_elsewhere = false;
  };
  // One erasure at a time holds this lock, since an erasure loads the disk. The thread that gets
  // the lock releases it. `conflict` while another erasure holds it.
  [[nodiscard]] model::Result<std::unique_lock<std::mutex>> begin_erasure();

  // Removes all data of the user in batches of bounded size, and its traces in the store's files.
  // Messages with a deadline and without an answer become failures; the row of a failure names no
  // user. After an error, call it again: it goes on. Errors: `conflict` if an event of the user is
  // in hand (no change was made), or came meanwhile; `unavailable`, also if all data is removed but
  // the write-ahead log could not be emptied.
  //
  // With several shards: all sessions of a user are in one shard. Call it there. If that is not the
  // first shard, its `forget_keys` has to call it there, too, with `lives_elsewhere`: the first one
  // has the Idempotency-Keys of appends and the audit trail.
  [[nodiscard]] model::Result<Erased> erase(const UserOfProject& user, const EraseHooks& hooks);

 private:
  struct SessionRow;
  [[nodiscard]] model::Result<std::vector<SessionRow>> sessions_of(const UserOfProject& user) const;
  [[nodiscard]] model::Result<void> erase_receipts(const SessionRow& session, Erased& erased);
  [[nodiscard]] model::Result<void> erase_session(const SessionRow& row, const EraseHooks& hooks,
                                                  Erased& erased);
  // The user's keys, and whether they have to be of this shard.
  struct Keys {
    model::KeyRange range;
    bool of_this_shard = true;
    [[nodiscard]] model::Result<void> check(const Writer& writer) const {
      return of_this_shard ? writer.check_place(range.from) : model::Result<void>();
    }
  };
  [[nodiscard]] model::Result<void> erase_causes(const Keys& keys, Erased& erased);
  [[nodiscard]] model::Result<void> erase_keyed(const Keys& keys, std::string_view sql,
                                                std::int64_t& count);
  [[nodiscard]] model::Result<void> erase_rest(const UserOfProject& user, const Keys& keys,
                                               const EraseHooks& hooks, Erased& erased);
  [[nodiscard]] model::Result<void> empty_write_ahead_log();

  std::mutex erasing_;
};

}  // namespace conversed::store
