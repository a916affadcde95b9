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

namespace conversed::store {

// A user of a project's Endpoints, by the name that clients give.
struct UserOfProject {
  std::string project_id;
  std::string user_id;
};

// The keys of all sessions that a user has at an Endpoint are from `from` up to, but without, `to`.
struct KeyRange {
  std::string from;
  std::string to;
};
[[nodiscard]] KeyRange keys_of_user(const std::string& project_id, const std::string& endpoint_id,
                                    const std::string& user_id);

// All that the store holds about one user: the profile, and of every session its state, what was
// said, what waits, the calls and timers that are pending, kept answers and dead letters. What is
// in one of these tables and names a user has to be here, too. Thread-safe; blocks on the disk.
class UserData {
 public:
  // Both must outlive it.
  UserData(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  // Where an export goes on: which kind of things, and behind which of them.
  struct Place {
    std::size_t kind = 0;
    std::int64_t row = -1;
    std::string id{};

    // As text without blanks, and back; nothing for what is none.
    [[nodiscard]] std::string to_text() const;
    [[nodiscard]] static std::optional<Place> from_text(std::string_view text);
  };
  struct Page {
    std::vector<nlohmann::json>
        items;  // objects; `kind` names what each is, times are Unix seconds
    std::optional<Place> next;
  };
  // The things behind `after`: `limit` (above 0) at most, and no more once they make about a
  // megabyte. Errors: `unavailable`, `internal`.
  [[nodiscard]] model::Result<Page> read_page(const UserOfProject& user, const Place& after,
                                              std::size_t limit) const;

  // Of all sessions that the user can have.
  [[nodiscard]] model::Result<std::vector<KeyRange>> key_ranges(const UserOfProject& user) const;

  struct Erased {
    std::int64_t sessions = 0;
    std::int64_t outputs = 0;
    std::int64_t pending = 0;  // events in inboxes, calls, timers, follow-ups and schedules
    std::int64_t dead_letters = 0;
    std::int64_t answers = 0;
    std::int64_t profiles = 0;
  };
  struct EraseHooks {
    // Whether the log has committed what stands there: it would be read again otherwise, and make
    // a session of it.
    std::function<bool(const model::Position&)> finished;
    // After the commit that ended a session, on the Committer's thread; with the inputs of it that
    // have no answer and get none.
    std::function<void(const model::SessionKey&, const std::vector<std::string>& inputs)> ended;
    // Has the log free the Idempotency-Keys of these sessions, if it keeps them. Before the answers
    // go that their repeats would wait for.
    std::function<model::Result<void>(const std::vector<KeyRange>& sessions)> forget_keys{};
  };
  // For as long as this lock is held nobody else is erased: what an erasure does to the files of
  // store and log is work for the disk. To be released by the thread that got it. `conflict`.
  [[nodiscard]] model::Result<std::unique_lock<std::mutex>> begin_erasure();

  // Removes all of it, by batches of bounded size, and what is left of it in the store's files.
  // What stays is that a keyed message was there, and nobody's: one that has no answer has failed,
  // and one that has can't be answered with what was said any more (an empty body).
  // Whatever is not done after an error is done by the next call. Errors: `conflict` if an event of
  // the user is in hand (nothing was done), or came meanwhile; `unavailable`, also if everything is
  // removed but the write-ahead log could not be emptied.
  [[nodiscard]] model::Result<Erased> erase(const UserOfProject& user, const EraseHooks& hooks);

 private:
  struct SessionRow;
  [[nodiscard]] model::Result<std::vector<SessionRow>> sessions_of(const UserOfProject& user) const;
  [[nodiscard]] model::Result<void> erase_session(const SessionRow& row, const EraseHooks& hooks,
                                                  Erased& erased);
  [[nodiscard]] model::Result<void> erase_rest(const UserOfProject& user, const EraseHooks& hooks,
                                               Erased& erased);
  [[nodiscard]] model::Result<void> empty_write_ahead_log();

  Database& database_;
  Committer& committer_;
  std::mutex erasing_;
};

}  // namespace conversed::store
