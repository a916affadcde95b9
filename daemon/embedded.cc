#include "daemon/embedded.h"

#include <algorithm>
#include <utility>

#include "daemon/backup.h"
#include "daemon/keyed_append.h"
#include "daemon/logging.h"
#include "daemon/part_settings.h"
#include "queue/kafka_log.h"
#include "queue/sqlite_log.h"

namespace conversed::daemon {
namespace {

using model::fail;
using model::Result;

Result<OpenedLog> open_sqlite_log(const config::Settings& settings, const model::Clock& clock) {
  queue::SqliteLogSettings log;
  log.path = (settings.data_dir / "log.db").string();
  log.partitions = static_cast<std::int32_t>(settings.queue.partitions);
  auto opened = queue::SqliteLog::open(std::move(log), clock);
  if (!opened) return fail(opened.error());
  queue::SqliteLog& embedded = **opened;
  return OpenedLog{std::move(*opened), nullptr, &embedded, &embedded};
}

Result<OpenedLog> open_kafka_log(const config::Settings& settings, store::Store& store,
                                 const model::Clock& clock) {
  auto log = queue::KafkaLog::open(kafka_log_settings(settings));
  if (!log) return fail(log.error());
  auto keys = std::make_unique<StoredKeyedAppend>(**log, store.append_keys(), clock, rename_event);
  queue::KeyedAppend& keyed = *keys;
  return OpenedLog{std::move(*log), std::move(keys), &keyed, nullptr};
}

// A new version changes the store for good: what it was before has to be there to go back to.
Result<void> back_up_before_migration(const config::Settings& settings, const model::Clock& clock,
                                      const std::function<bool()>& go_on) {
  auto stored = store::Database::stored_version(settings.data_dir / "store.db");
  if (!stored) return fail(stored.error());
  if (*stored == 0 || *stored >= store::schema_version) return {};
  BackupMaker backups(settings, clock, nullptr, go_on);
  auto made = backups.make_before_migration(*stored);
  if (!made) {
    return fail(made.error().code, "the store has to be migrated, and can't be backed up to " +
                                       backups.folder().string() +
                                       " before that: " + made.error().message);
  }
  log::info("store backed up before it is migrated", {{"path", made->path.string()},
                                                      {"fromSchema", *stored},
                                                      {"toSchema", store::schema_version}});
  return {};
}

}  // namespace

std::filesystem::path master_key(const config::Settings& settings) {
  return settings.master_key.empty() ? settings.data_dir / "master.key" : settings.master_key;
}

Result<OpenedLog> open_log(const config::Settings& settings, store::Store& store,
                           const model::Clock& clock) {
  return settings.queue.driver == config::QueueDriver::kafka
             ? open_kafka_log(settings, store, clock)
             : open_sqlite_log(settings, clock);
}

store::StoreSettings embedded_store_settings(const config::Settings& settings) {
  store::StoreSettings store;
  store.data_dir = settings.data_dir;
  store.master_key = settings.master_key;
  // One for each worker, reactor thread, management thread and the sign-in thread, and some for
  // the services, so that none waits.
  store.readers = std::min<std::size_t>(64, settings.workers + settings.api.threads + 13);
  return store;
}

model::Result<std::unique_ptr<store::Store>> open_embedded_store(const config::Settings& settings,
                                                                 const model::Clock& clock,
                                                                 std::function<bool()> go_on) {
  if (auto safe = back_up_before_migration(settings, clock, go_on); !safe) {
    return fail(safe.error());
  }
  auto store = embedded_store_settings(settings);
  store.go_on = std::move(go_on);
  return store::Store::open(store, clock);
}

}  // namespace conversed::daemon
