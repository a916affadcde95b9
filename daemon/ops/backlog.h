#pragma once

namespace conversed::queue {
class Log;
}
namespace conversed::store {
class Store;
}

namespace conversed::daemon {

class Metrics;

// Updates the metrics of waiting records, deliveries and dead letters from log and store. If one of
// them fails, its metrics keep their values. One thread at a time.
void update_backlog(Metrics& metrics, queue::Log& log, store::Store& store);

}  // namespace conversed::daemon
