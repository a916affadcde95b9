#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "store/accounts/accounts.h"
#include "store/accounts/audit.h"
#include "store/accounts/members.h"
#include "store/accounts/oauth.h"
#include "store/accounts/sign_ins.h"
#include "store/assets/assets.h"
#include "store/assets/removal.h"
#include "store/cluster/notifications.h"
#include "store/commit/committer.h"
#include "store/commit/usage.h"
#include "store/conversation/answers.h"
#include "store/conversation/attempts.h"
#include "store/conversation/calls.h"
#include "store/conversation/dead_letters.h"
#include "store/conversation/deliveries.h"
#include "store/conversation/endpoint_health.h"
#include "store/conversation/outbox.h"
#include "store/conversation/receipts.h"
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
#include "store/sql/postgres_watch.h"

namespace conversed::store {

struct StoreSettings {
  std::filesystem::path data_dir;  // must exist; `master.key` and SQLite's `store.db` are in it
  // A key file that a service manager hands over; empty: `data_dir/master.key`, made with the
  // store.
  std::filesystem::path master_key{};
  std::optional<PostgresSettings> postgres{};  // instead of `store.db`
  std::size_t readers = 4;
  std::chrono::milliseconds busy_timeout{250};
  CommitterSettings committer{};
  // Unless it is empty: called many times a second during a migration, on the opening thread. False
  // ends the migration with `unavailable` and undoes the present step.
  std::function<bool()> go_on{};
  // A key that opens none of the store's secrets: refused, or counted by `unreadable_secrets`.
  enum class WrongKey : std::uint8_t { refused, counted } wrong_key = WrongKey::refused;
};

// Owns the database, the Committer and one object for each kind of data. The daemon and `init` open
// it after they have locked the data folder. One thread opens and destroys it; the objects of the
// accessors are thread-safe.
class Store {
 public:
  // Opens the store. If there is neither store nor key, makes both. Refuses, with the errors of
  // Database and Sealer: a newer schema, a key file that others can read, a store without its key,
  // a `master_key` that lacks a key of the data folder's own file; with `conflict`, unless it is
  // `counted`: a store that was made with another key, or none of whose secrets the key opens.
  // `clock` must outlive the Store.
  // Kept by: StoreLife.StoreWithoutItsKeyIsRefused, StoreLife.StoreWithoutSecretsHasItsKeyToo,
  // KeyRotationTest.StoreOfAnotherKeyIsRefused.
  [[nodiscard]] static model::Result<std::unique_ptr<Store>> open(const StoreSettings& settings,
                                                                  const model::Clock& clock);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();  // stops the Committer

  // The number of secrets that the master key did not open at the start.
  [[nodiscard]] std::int64_t unreadable_secrets() const { return unreadable_secrets_; }

  // Deletes the rows in `writers` of daemons that have been gone for a week. Fails fast.
  [[nodiscard]] model::Result<void> forget_writers();

  // The time by the clock of timers (daemon/timers/timer_clock.h), for due times and expiry.
  [[nodiscard]] model::Timestamp timer_now() const { return timer_clock_.now(); }

  // False while writes fail, and while the server is silent: then reads fail at once.
  [[nodiscard]] bool healthy() const;
  // Why it is not healthy: the last error, with the file of a store in a file. Contains no secret.
  // Empty: it is healthy.
  [[nodiscard]] std::string failure() const;

  [[nodiscard]] Committer& committer() { return committer_; }
  [[nodiscard]] Sessions& sessions() { return sessions_; }
  [[nodiscard]] Outbox& outbox() { return outbox_; }
  [[nodiscard]] Deliveries& deliveries() { return deliveries_; }
  [[nodiscard]] EndpointHealth& endpoint_health() { return endpoint_health_; }
  [[nodiscard]] Receipts& receipts() { return receipts_; }
  [[nodiscard]] Calls& calls() { return calls_; }
  [[nodiscard]] Schedules& schedules() { return schedules_; }
  [[nodiscard]] Timers& timers() { return timers_; }
  [[nodiscard]] Audit& audit() { return audit_; }
  [[nodiscard]] DeadLetters& dead_letters() { return dead_letters_; }
  [[nodiscard]] AppendKeys& append_keys() { return append_keys_; }
  [[nodiscard]] Attempts& attempts() { return attempts_; }
  [[nodiscard]] Answers& answers() { return answers_; }
  [[nodiscard]] Jobs& jobs() { return jobs_; }
  [[nodiscard]] Proactive& proactive() { return proactive_; }
  [[nodiscard]] Assets& assets() { return assets_; }
  [[nodiscard]] Removals& removals() { return removals_; }
  [[nodiscard]] KnowledgeSearch& knowledge() { return knowledge_; }
  [[nodiscard]] Accounts& accounts() { return accounts_; }
  [[nodiscard]] Oauth& oauth() { return oauth_; }
  [[nodiscard]] SignIns& sign_ins() { return sign_ins_; }
  [[nodiscard]] Usage& usage() { return usage_; }
  [[nodiscard]] KeyRotation& key_rotation() { return key_rotation_; }
  [[nodiscard]] UserData& user_data() { return user_data_; }
  [[nodiscard]] Members& members() { return members_; }
  // Notifications of other daemons; none with SQLite.
  [[nodiscard]] Notifications& notifications() { return notifications_; }

 private:
  struct Opened;
  Store(Opened opened, const StoreSettings& settings, const model::Clock& clock);
  [[nodiscard]] static model::Result<Opened> open_in_file(const StoreSettings& settings);
  [[nodiscard]] static model::Result<Opened> open_in_postgres(const StoreSettings& settings);
  [[nodiscard]] model::Result<void> begin(const StoreSettings& settings);
  void note_change(std::string_view topic);

  Sealer sealer_;
  const std::unique_ptr<Database> database_;
  const std::filesystem::path file_;  // empty: it is in a server
  const model::Clock& timer_clock_;
  const std::shared_ptr<PostgresPulse> pulse_;  // null: there is no server
  Committer committer_;
  Sessions sessions_{*database_, committer_};
  Outbox outbox_{*database_, committer_};
  Deliveries deliveries_{*database_, committer_};
  EndpointHealth endpoint_health_{*database_, committer_};
  Receipts receipts_{*database_, committer_};
  Calls calls_{*database_, committer_};
  Schedules schedules_{*database_, committer_};
  Timers timers_{*database_, committer_};
  Audit audit_{*database_, committer_};
  DeadLetters dead_letters_{*database_, committer_};
  AppendKeys append_keys_{*database_, committer_};
  Attempts attempts_{*database_, committer_};
  Answers answers_{*database_, committer_};
  Jobs jobs_{*database_, committer_};
  Proactive proactive_{*database_, sealer_};
  Assets assets_{*database_, committer_, sealer_};
  Removals removals_{*database_};
  KnowledgeSearch knowledge_{*database_};
  Accounts accounts_{*database_, committer_};
  Oauth oauth_{*database_, committer_, sealer_};
  SignIns sign_ins_{*database_, committer_, sealer_};
  Usage usage_{*database_};
  KeyRotation key_rotation_{*database_, committer_, sealer_};
  UserData user_data_{*database_, committer_};
  Members members_{*database_, committer_};
  Notifications notifications_;
  std::optional<PostgresWatch> watch_;
  std::int64_t unreadable_secrets_ = 0;
};

}  // namespace conversed::store
