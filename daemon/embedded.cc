#include "daemon/embedded.h"

#include <algorithm>
#include <utility>

namespace conversed::daemon {

model::Result<std::unique_ptr<queue::SqliteLog>> open_embedded_log(const config::Settings& settings,
                                                                   const model::Clock& clock) {
  queue::SqliteLogSettings log;
  log.path = (settings.data_dir / "log.db").string();
  log.partitions = static_cast<std::int32_t>(settings.queue.partitions);
  return queue::SqliteLog::open(std::move(log), clock);
}

model::Result<std::unique_ptr<store::Store>> open_embedded_store(const config::Settings& settings,
                                                                 const model::Clock& clock) {
  store::StoreSettings store;
  store.data_dir = settings.data_dir;
  // One for each worker, reactor thread, management thread and the sign-in thread, and some for
  // the services, so that none waits.
  store.readers = std::min<std::size_t>(64, settings.workers + settings.api.threads + 12);
  return store::Store::open(store, clock);
}

}  // namespace conversed::daemon
