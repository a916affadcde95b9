#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "store/accounts/accounts.h"
#include "store/accounts/audit.h"
#include "store/accounts/members.h"
#include "store/accounts/oauth.h"
#include "store/accounts/sign_ins.h"
#include "store/assets/assets.h"
#include "store/assets/removal.h"
#include "store/commit/usage.h"
#include "store/idempotency/append_keys.h"
#include "store/jobs/jobs.h"
#include "store/jobs/proactive.h"
#include "store/knowledge/knowledge.h"
#include "store/model/clock.h"
#include "store/secrets/key_rotation.h"
#include "store/secrets/sealer.h"
#include "store/shards/layout.h"
#include "store/shards/shard.h"

namespace conversed::store {

struct StoreSettings {
  std::filesystem::path data_dir;  // must exist; `master.key` and SQLite's `store.db` are in it
  // A key file that a service manager hands over; empty: `data_dir/master.key`, made with the
  // store.
  std::filesystem::path master_key{};
  std::optional<PostgresSettings> postgres{};  // instead of `store.db`
  std::vector<PostgresSettings> shards{};      // further servers with sessions, besides `postgres`
  std::size_t readers = 4;
  std::chrono::milliseconds busy_timeout{250};
  CommitterSettings committer{};
  // Unless it is empty: called many times a second during a migration, on the opening thread. False
  // ends the migration with `unavailable` and undoes the present step.
  std::function<bool()> go_on{};
  // A key that opens none of the store's secrets: refused, or counted by `unreadable_secrets`.
  enum class WrongKey : std::uint8_t { refused, counted } wrong_key = WrongKey::refused;
};

// All data: the shards, which hold the conversations, and one object for each other kind of data,
// whose rows are in the first shard. The daemon and `init` open it after they have locked the data
// folder. One thread opens and destroys it; the objects of the accessors are thread-safe.
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
  ~Store();  // stops the shards

  // The number of secrets that the master key did not open at the start.
  [[nodiscard]] std::int64_t unreadable_secrets() const { return unreadable_secrets_; }

  // The time by the clock of timers, as Shard::timer_now.
  [[nodiscard]] model::Timestamp timer_now() const { return first().timer_now(); }

  [[nodiscard]] const Shards& shards() const { return shards_; }
  [[nodiscard]] Shard& first() const { return *shards_.front(); }
  // The shard of the session, or of a partition. Thread-safe.
  [[nodiscard]] Shard& of(const model::SessionKey& key) const;
  [[nodiscard]] Shard& of(std::int32_t partition) const;
  // Subscribes to the topic in all shards. Their calls may come at the same time.
  [[nodiscard]] std::vector<Notifications::Subscription> subscribe(
      std::string_view topic, const Notifications::Heard& heard) const;
  // Which shard has which partition.
  [[nodiscard]] Layout& layout() { return layout_; }
  // Sessions::highest_positions of all shards that work.
  [[nodiscard]] model::Result<std::vector<model::Position>> highest_positions() const;
  // Committer::stop_retrying in all shards.
  void stop_retrying();
  // Committer::stop in all shards.
  void stop_commits();

  // Writes what no session owns.
  [[nodiscard]] Committer& committer() { return first().committer(); }
  [[nodiscard]] Audit& audit() { return audit_; }
  [[nodiscard]] AppendKeys& append_keys() { return append_keys_; }
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
  [[nodiscard]] Members& members() { return members_; }

 private:
  struct Opened;
  Store(Opened opened, const StoreSettings& settings, const model::Clock& clock);
  [[nodiscard]] static model::Result<Opened> open_in_file(const StoreSettings& settings);
  [[nodiscard]] static model::Result<Opened> open_in_postgres(const StoreSettings& settings);
  [[nodiscard]] model::Result<void> begin(const StoreSettings& settings);
  void note_change(std::string_view topic);
  [[nodiscard]] std::vector<Database*> databases() const;

  Sealer sealer_;
  const Shards shards_;
  Layout layout_{shards_};
  Database& database_{first().database()};
  Audit audit_{shards_};
  AppendKeys append_keys_{database_, committer()};
  Jobs jobs_{database_, committer()};
  Proactive proactive_{shards_, sealer_};
  Assets assets_{shards_, sealer_};
  Removals removals_{shards_};
  KnowledgeSearch knowledge_{database_};
  Accounts accounts_{database_, committer()};
  Oauth oauth_{database_, committer(), sealer_};
  SignIns sign_ins_{database_, committer(), sealer_};
  Usage usage_{databases()};
  KeyRotation key_rotation_{shards_, sealer_};
  Members members_{database_, committer()};
  std::int64_t unreadable_secrets_ = 0;
};

}  // namespace conversed::store
