#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/conversation/sessions.h"
#include "store/model/keyed_hash.h"
#include "store/model/session.h"

namespace conversed::store {

struct EncodedCommit;

// Sessions and profiles as the last Turns wrote them, so that the next Turn of a session need not
// read the store. They are kept as the texts that the commit writes: a Turn finds the same values
// here as in the store.
//
// Kept rows may be out of date, since an operator or another daemon may have changed the store. A
// commit compares the versions of session and profile: a batch on old rows is a conflict and is
// built again from the store. A batch that does not commit has to be built from the store
// (build_turn_batch). Versions begin again when a session or profile is made anew, so a daemon
// clears all when it takes up partitions, and when it hears of an erasure.
// Kept by: RecentTurnsTest.ASessionThatChangedBehindItsLastTurnIsReadAgain,
// RecentTurnsTest.PartitionsThatAreTakenUpHaveNoRecentSessions.
//
// Thread-safe.
class RecentSessions {
 public:
  // Beyond `most_bytes` the sessions that were kept first are dropped. A session of more than a
  // sixteenth of it is not kept.
  explicit RecentSessions(std::size_t most_bytes = std::size_t{4} << 20)
      : most_bytes_(most_bytes) {}
  RecentSessions(const RecentSessions&) = delete;
  RecentSessions& operator=(const RecentSessions&) = delete;

  // Keeps the rows that the commit leaves. To be called before the commit is submitted. If it is
  // not committed, the caller has to forget the session. `profile`: its data as the Turns left it,
  // with the version that they read. `outputs_are_known`: for Sessions::Loaded. A commit that
  // writes the profile drops the user's other sessions, whose profile is old now.
  void keep(const EncodedCommit& encoded, const model::Profile& profile, bool outputs_are_known);
  // Hands the session out. It is not kept any more.
  [[nodiscard]] std::optional<Sessions::Loaded> take(const model::SessionKey& key);
  [[nodiscard]] bool has(const model::SessionKey& key) const;
  void forget(const model::SessionKey& key);
  void clear();

 private:
  struct Row {
    model::SessionKey key;
    std::int64_t version = 0;
    model::Position position{};
    model::Timestamp started_at{};
    model::Timestamp last_activity_at{};
    std::string context;
    std::string flow_state;
    std::optional<std::string> execution;
    std::int64_t last_output_seq = 0;
    std::int64_t inbox_size = 0;
    std::string last_receipt;
    std::int64_t profile_version = 0;
    std::string profile;
    bool outputs_are_known = false;
    std::size_t bytes = 0;  // in memory, about
  };
  using Rows = std::list<Row>;
  using OfUser = std::vector<Rows::iterator>;  // the sessions of one user, oldest first

  // These are called under `mutex_`.
  std::optional<Row> extract(const model::SessionKey& key);
  void drop_user(const std::string& user);

  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  Rows rows_;  // the one that was kept last comes first
  std::unordered_map<std::string, OfUser, model::KeyedHash> users_;
  std::size_t bytes_ = 0;
};

}  // namespace conversed::store
