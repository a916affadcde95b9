#include "daemon/embedded.h"

#include <utility>

#include "daemon/keyed_append.h"
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
  queue::SqliteLog& keyed = **opened;
  return OpenedLog{std::move(*opened), nullptr, &keyed};
}

Result<OpenedLog> open_kafka_log(const config::Settings& settings, store::Store& store,
                                 const model::Clock& clock) {
  auto log = queue::KafkaLog::open(kafka_log_settings(settings));
  if (!log) return fail(log.error());
  auto keys = std::make_unique<StoredKeyedAppend>(**log, store.append_keys(), clock, rename_event);
  queue::KeyedAppend& keyed = *keys;
  return OpenedLog{std::move(*log), std::move(keys), &keyed};
}

}  // namespace

Result<OpenedLog> open_log(const config::Settings& settings, store::Store& store,
                           const model::Clock& clock) {
  return settings.queue.driver == config::QueueDriver::kafka
             ? open_kafka_log(settings, store, clock)
             : open_sqlite_log(settings, clock);
}

model::Result<std::unique_ptr<store::Store>> open_store(const config::Settings& settings,
                                                        const model::Clock& clock) {
  return store::Store::open(store_settings(settings), clock);
}

}  // namespace conversed::daemon
