#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "store/accounts/accounts.h"
#include "store/accounts/audit.h"
#include "store/accounts/members.h"
#include "store/accounts/oauth.h"
#include "store/accounts/sign_ins.h"
#include "store/assets/assets.h"
#include "store/cluster/notifications.h"
#include "store/commit/committer.h"
#include "store/commit/usage.h"
#include "store/conversation/answers.h"
#include "store/conversation/attempts.h"
#include "store/conversation/calls.h"
#include "store/conversation/dead_letters.h"
#include "store/conversation/follow_ups.h"
#include "store/conversation/outbox.h"
#include "store/conversation/pending_timers.h"
#include "store/conversation/schedules.h"
#include "store/conversation/sessions.h"
#include "store/conversation/timers.h"
#include "store/conversation/user_data.h"
#include "store/idempotency/append_keys.h"
#include "store/jobs/jobs.h"
#include "store/jobs/proactive.h"
#include "store/knowledge/knowledge.h"
#include "store/model/clock.h"
#include "store/secrets/key_rotation.h"
#include "store/secrets/sealer.h"
#include "store/sql/database.h"

namespace conversed::store {

struct StoreSettings {
  std::filesystem::path data_dir;  // must exist; `master.key` and SQLite's `store.db` are in it
  // The key file, if somebody else keeps it; empty: `data_dir/master.key`, made with the store.
  std::filesystem::path master_key{};
  std::optional<PostgresSettings> postgres{};  // instead of `store.db`
  std::size_t readers = 4;
  std::chrono::milliseconds busy_timeout{250};
  CommitterSettings committer{};
  // Unless it is empty: asked many times a second while an older store is migrated, on the thread
  // that opens it; false ends that with `unavailable`, and the step in hand is undone.
  std::function<bool()> go_on{};
};

// Everything that is kept, in one place: owns the database, the Committer and one object for each
// kind of thing. The daemon and `init` open it; the data folder's lock is theirs to take before.
// Opening and stopping belong to one thread; what the accessors give is thread-safe.
class Store {
 public:
  // Opens the store, or makes it with a new master key if there is neither. Refused, with the
  // errors of Database and Sealer: a newer schema, a key file that others can read, a store whose
  // key is missing, a `master_key` that lacks what the data folder's own key file has;
  // `conflict`, a store none of whose secrets the key opens, or one in PostgreSQL that was made
  // with another key. `clock` must outlive the Store.
  [[nodiscard]] static model::Result<std::unique_ptr<Store>> open(const StoreSettings& settings,
                                                                  const model::Clock& clock);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();  // stops the Committer

  // How many secrets the master key did not open at the start.
  [[nodiscard]] std::int64_t unreadable_secrets() const;

  // Forgets what is kept of the writes of daemons that have been gone for a week. No patience.
  [[nodiscard]] model::Result<void> forget_writers();

  // The time that waits go by (daemon/timers/timer_clock.h): what `now` is to be where something
  // expires.
  [[nodiscard]] model::Timestamp timer_now() const;

  // False while writes fail, and while a server in the network is silent: then reads fail at once.
  [[nodiscard]] bool healthy() const;

  [[nodiscard]] Committer& committer();
  [[nodiscard]] Sessions& sessions();
  [[nodiscard]] Outbox& outbox();
  [[nodiscard]] Calls& calls();
  [[nodiscard]] FollowUps& follow_ups();
  [[nodiscard]] Schedules& schedules();
  [[nodiscard]] Timers& timers();
  [[nodiscard]] PendingTimers& pending_timers();
  [[nodiscard]] Audit& audit();
  [[nodiscard]] DeadLetters& dead_letters();
  [[nodiscard]] AppendKeys& append_keys();
  [[nodiscard]] Attempts& attempts();
  [[nodiscard]] Answers& answers();
  [[nodiscard]] Jobs& jobs();
  [[nodiscard]] Proactive& proactive();
  [[nodiscard]] Assets& assets();
  [[nodiscard]] KnowledgeSearch& knowledge();
  [[nodiscard]] Accounts& accounts();
  [[nodiscard]] Oauth& oauth();
  [[nodiscard]] SignIns& sign_ins();
  [[nodiscard]] Usage& usage();
  [[nodiscard]] KeyRotation& key_rotation();
  [[nodiscard]] UserData& user_data();
  [[nodiscard]] Members& members();
  // What other daemons announce; silent where there is one at most.
  [[nodiscard]] Notifications& notifications();

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace conversed::store
