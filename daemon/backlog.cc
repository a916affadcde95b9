#include "daemon/backlog.h"

#include <cstdint>

#include "daemon/metrics.h"
#include "queue/log.h"
#include "store/store.h"

namespace conversed::daemon {

void update_backlog(Metrics& metrics, queue::Log& log, store::Store& store) {
  // A log that is away is not asked.
  const auto ranges = log.health() ? log.ranges() : model::fail(model::Error());
  if (ranges) {
    std::int64_t lag = 0;
    for (const auto& range : *ranges) lag += range.end - range.committed;
    metrics.log_lag.set(static_cast<double>(lag));
  }
  if (auto pending = store.outbox().pending()) {
    metrics.deliveries_pending.set(static_cast<double>(*pending));
  }
  if (auto waiting = store.dead_letters().count_new()) {
    metrics.dead_letters_waiting.set(static_cast<double>(*waiting));
  }
}

}  // namespace conversed::daemon
