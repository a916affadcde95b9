#include "daemon/data/storage.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <system_error>
#include <utility>

#include "daemon/data/backup.h"
#include "daemon/log/keyed_append.h"
#include "daemon/ops/logging.h"
#include "queue/file/file_log.h"
#include "queue/file/recovery.h"
#include "queue/kafka/kafka_log.h"

namespace conversed::daemon {
namespace {

using model::fail;
using model::Result;

std::vector<std::pair<std::string, std::string>> properties_of(const config::KafkaSettings& kafka) {
  std::vector<std::pair<std::string, std::string>> properties;
  for (const auto& [name, value] : kafka.properties) properties.emplace_back(name, value.reveal());
  return properties;
}

// Kafka's reports become lines of this process's log.
queue::KafkaLogSettings kafka_log_settings(const config::Settings& settings) {
  const config::KafkaSettings& kafka = settings.queue.kafka;
  queue::KafkaLogSettings log;
  log.bootstrap_servers = kafka.bootstrap_servers;
  log.topic_prefix = kafka.topic_prefix;
  log.instance_id = kafka.instance_id.empty() ? member_name(settings) : kafka.instance_id;
  log.properties = properties_of(kafka);
  log.partitions = static_cast<std::int32_t>(settings.queue.partitions);
  log.delivery_timeout = kafka.delivery_timeout;
  log.report = [](const std::string& what) { log::warn("kafka", {{"message", what}}); };
  return log;
}

Result<OpenedLog> open_file_log(const config::Settings& settings, store::Store& store,
                                const model::Clock& clock, queue::Pruning pruning) {
  auto disk = queue::open_disk(settings.data_dir / "log");
  if (!disk) return fail(disk.error());
  auto log = queue::FileLog::open(
      std::move(*disk),
      {.partitions = static_cast<std::int32_t>(settings.queue.partitions), .pruning = pruning},
      store.append_keys(), clock);
  if (!log) return fail(log.error());
  queue::FileLog& embedded = **log;
  return OpenedLog{std::move(*log), nullptr, &embedded, &embedded};
}

// Whether the session's position is at or past the record.
Result<bool> has_had_effects(const queue::LogRecord& record, store::Store& store) {
  const auto key = model::SessionKey::decode(record.record.key);
  if (!key) return false;
  const auto session = store.of(*key).sessions().load(*key);
  if (!session) return fail(session.error());
  if (!*session) return false;
  const auto& seen = (*session)->position;
  return seen.epoch == record.position.epoch && seen.partition == record.position.partition &&
         seen.offset >= record.position.offset;
}

Result<OpenedLog> open_kafka_log(const config::Settings& settings, store::Store& store,
                                 const model::Clock& clock) {
  auto log_settings = kafka_log_settings(settings);
  log_settings.is_finished = [&store](const queue::LogRecord& record) {
    return has_had_effects(record, store);
  };
  auto log = queue::open_kafka_log(std::move(log_settings));
  if (!log) return fail(log.error());
  auto keys = std::make_unique<StoredKeyedAppend>(**log, store.append_keys(), clock, rename_event);
  queue::KeyedAppend& keyed = *keys;
  return OpenedLog{std::move(*log), std::move(keys), &keyed, nullptr};
}

// A migration can't be undone, so a copy of the old store must exist. The administrator of a
// PostgreSQL server backs it up.
Result<void> back_up_before_migration(const config::Settings& settings, const model::Clock& clock,
                                      const std::function<bool()>& go_on) {
  if (settings.store.driver == config::StoreDriver::postgres) return {};
  auto stored = store::Database::stored_version(settings.data_dir / "store.db");
  if (!stored) return fail(stored.error());
  if (!*stored || **stored >= store::schema_version) return {};
  BackupMaker backups(settings, clock, nullptr, go_on);
  auto made = backups.make_before_migration(**stored);
  if (!made) {
    return fail(made.error().code, "the store has to be migrated, and can't be backed up to " +
                                       backups.folder().string() +
                                       " before that: " + made.error().message);
  }
  log::info("store backed up before it is migrated", {{"path", made->path.string()},
                                                      {"fromSchema", **stored},
                                                      {"toSchema", store::schema_version}});
  return {};
}

// A new store would run all events of the log again, and hide the loss of the old store. The first
// start makes the store before the log, so a log with events has had a store.
Result<void> check_store_of_log(const config::Settings& settings) {
  if (settings.store.driver != config::StoreDriver::sqlite ||
      settings.queue.driver != config::QueueDriver::embedded) {
    return {};
  }
  std::error_code ignored;
  const auto folder = settings.data_dir / "log";
  if (std::filesystem::exists(settings.data_dir / "store.db", ignored)) return {};
  if (!std::filesystem::exists(folder, ignored)) return {};
  const auto used = queue::was_used(folder);
  if (!used) return fail(used.error());
  if (!*used) return {};
  return fail(model::Errc::conflict,
              "the store is missing, but the log has events: restore store.db from a backup; to "
              "begin anew, move " +
                  folder.string() + " away");
}

}  // namespace

// The default stays the same from start to start. It is unique on a host, since each daemon locks
// its data folder.
std::string member_name(const config::Settings& settings) {
  if (!settings.cluster.name.empty()) return settings.cluster.name;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::error_code failed;
  const auto path = std::filesystem::weakly_canonical(settings.data_dir, failed);
  const auto number = queue::partition_of((failed ? settings.data_dir : path).string(),
                                          std::numeric_limits<std::int32_t>::max());
  return std::string(host.data()) + "-" + std::to_string(number);
}

bool in_cluster(const config::Settings& settings) {
  return settings.store.driver == config::StoreDriver::postgres;
}

std::vector<std::string> kafka_problems(const config::KafkaSettings& settings) {
  return queue::kafka_property_problems(properties_of(settings));
}

store::StoreSettings store_settings(const config::Settings& settings,
                                    store::PostgresSettings::Place place) {
  store::StoreSettings store;
  store.data_dir = settings.data_dir;
  store.master_key = settings.master_key;
  // One connection for each worker, reactor thread and management thread, for the sign-in and the
  // import thread, and some for the services, so that no thread waits for a connection.
  store.readers = std::min<std::size_t>(64, settings.workers + settings.api.threads + 15);
  if (settings.store.driver == config::StoreDriver::postgres) {
    store::PostgresSettings server{.url = settings.store.postgres.url.reveal(),
                                   .timeout = settings.store.postgres.timeout,
                                   // Below the statement's limit, whose error says less.
                                   .turn_timeout = settings.store.postgres.timeout / 2,
                                   .place = place};
    for (const auto& url : settings.store.postgres.shards) {
      store.shards.push_back(server);
      store.shards.back().url = url.reveal();
    }
    store.postgres = std::move(server);
  }
  return store;
}

std::filesystem::path master_key(const config::Settings& settings) {
  return settings.master_key.empty() ? settings.data_dir / "master.key" : settings.master_key;
}

Result<OpenedLog> open_log(const config::Settings& settings, store::Store& store,
                           const model::Clock& clock, queue::Pruning pruning) {
  return settings.queue.driver == config::QueueDriver::kafka
             ? open_kafka_log(settings, store, clock)
             : open_file_log(settings, store, clock, pruning);
}

model::Result<std::unique_ptr<store::Store>> open_store(const config::Settings& settings,
                                                        const model::Clock& clock,
                                                        store::PostgresSettings::Place place,
                                                        std::function<bool()> go_on,
                                                        const model::Clock* timer_clock) {
  if (auto there = check_store_of_log(settings); !there) return fail(there.error());
  if (auto safe = back_up_before_migration(settings, clock, go_on); !safe) {
    return fail(safe.error());
  }
  auto opening = store_settings(settings, place);
  opening.go_on = std::move(go_on);
  opening.committer.timer_clock = timer_clock;
  auto store = store::Store::open(opening, clock);
  if (store && (*store)->unreadable_secrets() > 0) {
    log::error(
        "secrets that the master key does not open: give back the key that they were sealed with, "
        "or import the Connections and webhooks again",
        {{"count", (*store)->unreadable_secrets()}});
  }
  return store;
}

}  // namespace conversed::daemon
