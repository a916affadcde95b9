#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "config/settings.h"
#include "queue/keyed_append.h"
#include "queue/log.h"
#include "queue/sqlite/sqlite_log.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/store.h"

namespace conversed::daemon {

// A log and the keys of appends to it, which are in the log or in the store.
struct OpenedLog {
  std::unique_ptr<queue::Log> log;
  std::unique_ptr<queue::KeyedAppend> stored_keys;  // null where the log keeps them
  queue::KeyedAppend* keyed = nullptr;
  queue::SqliteLog* embedded = nullptr;  // the log itself, if it is a file
  std::unique_ptr<queue::Log> jobs;      // what wakes jobs; null where that is in the log as well
};

// The log that the settings name: a file in the data folder, which the caller has locked, or Kafka.
// Keys live by `clock`. `store` and `clock` must outlive what is returned. Kafka's need not be
// there yet.
[[nodiscard]] model::Result<OpenedLog> open_log(const config::Settings& settings,
                                                store::Store& store, const model::Clock& clock);

// Where the master key is: the credential that the service manager hands over, or a file in the
// data folder.
[[nodiscard]] std::filesystem::path master_key(const config::Settings& settings);

// The store that the settings name: a file in the data folder, which the caller has locked, or
// PostgreSQL, which has to be there. `clock` must outlive it. One of an older version is migrated;
// before that a file is backed up, with its log: without that nothing is changed. Both take time in
// proportion to its size; `go_on`, unless it is empty, is asked again and again meanwhile, on the
// calling thread, and false ends it with `unavailable`.
// `timer_clock`: what waits go by, which must outlive it, too; null: `clock`.
// `place`: who else may have PostgreSQL's open meanwhile; who may not is named by the error.
[[nodiscard]] model::Result<std::unique_ptr<store::Store>> open_store(
    const config::Settings& settings, const model::Clock& clock,
    store::PostgresSettings::Place place = store::PostgresSettings::Place::shared,
    std::function<bool()> go_on = {}, const model::Clock* timer_clock = nullptr);

}  // namespace conversed::daemon
