#pragma once

namespace conversed::queue {
class Log;
}
namespace conversed::store {
class Store;
}

namespace conversed::daemon {

class Metrics;

// Brings those metrics up to date that say how much waits, in log and store, which it asks for
// that; what can't be asked at present keeps its last value. From one thread at a time.
void update_backlog(Metrics& metrics, queue::Log& log, store::Store& store);

}  // namespace conversed::daemon
