#include "daemon/ops/backlog.h"

#include "daemon/ops/metrics.h"
#include "queue/log.h"
#include "store/store.h"

namespace conversed::daemon {

void update_backlog(Metrics& metrics, queue::Log& log, store::Store& store) {
  // A log that is away is not asked.
  const auto ranges = log.health() ? log.ranges() : model::fail(model::Error());
  if (ranges) metrics.log_lag.set(static_cast<double>(queue::lag_of(*ranges)));
  if (auto pending = store.outbox().pending()) {
    metrics.deliveries_pending.set(static_cast<double>(*pending));
  }
  if (auto waiting = store.dead_letters().count_new()) {
    metrics.dead_letters_waiting.set(static_cast<double>(*waiting));
  }
}

}  // namespace conversed::daemon
