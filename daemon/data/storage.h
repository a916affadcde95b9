#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/settings.h"
#include "queue/file/file_log.h"
#include "queue/keyed_append.h"
#include "queue/log.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/store.h"

namespace conversed::daemon {

// This daemon's name among the daemons that share its store and log: `cluster.name`, else the
// host's name and a hash of the data folder, which stay the same from start to start.
[[nodiscard]] std::string member_name(const config::Settings& settings);
// Whether other daemons may share the store and the log.
[[nodiscard]] bool in_cluster(const config::Settings& settings);
// The problems in the properties for Kafka's client. They contain no values.
[[nodiscard]] std::vector<std::string> kafka_problems(const config::KafkaSettings& settings);

// A log, and the keeper of its Idempotency-Keys: the log itself or `stored_keys`.
struct OpenedLog {
  std::unique_ptr<queue::Log> log;
  std::unique_ptr<queue::KeyedAppend> stored_keys;  // null if the log keeps the keys
  queue::KeyedAppend* keyed = nullptr;
  queue::FileLog* embedded = nullptr;  // the log itself, if it is embedded
};

// Opens the log of the settings: files in the data folder, which the caller has locked, or Kafka,
// which may be away. Keys expire by `clock`. `store` and `clock` must outlive the result. `pruning`
// is the embedded log's.
[[nodiscard]] model::Result<OpenedLog> open_log(const config::Settings& settings,
                                                store::Store& store, const model::Clock& clock,
                                                queue::Pruning pruning = queue::Pruning::on);

// The master key's file: the service manager's credential, or a file in the data folder.
[[nodiscard]] std::filesystem::path master_key(const config::Settings& settings);

// `place` tells whether other daemons may open the same store.
[[nodiscard]] store::StoreSettings store_settings(const config::Settings& settings,
                                                  store::PostgresSettings::Place place);

// Opens the store of the settings: a file in the data folder, which the caller has locked, or
// PostgreSQL, which has to be reachable. `conflict` if the file is missing although the embedded
// log has had events. Kept by: BackupTest.MissingStoreOfAUsedLogIsRefused. `clock` must outlive it.
// An older store is migrated; a file is first backed up with its log, and stays unchanged if that
// fails. Both take time in proportion to its size. `go_on`, if not empty, is called repeatedly
// meanwhile, on the calling thread; false ends the backup or the migration with `unavailable`.
// `timer_clock`: the clock of waits, which must also outlive the store; null: `clock`. `place`:
// whether other programs may have PostgreSQL's store open; the error names them.
[[nodiscard]] model::Result<std::unique_ptr<store::Store>> open_store(
    const config::Settings& settings, const model::Clock& clock,
    store::PostgresSettings::Place place = store::PostgresSettings::Place::shared,
    std::function<bool()> go_on = {}, const model::Clock* timer_clock = nullptr);

}  // namespace conversed::daemon
