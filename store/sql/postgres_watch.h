#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "store/model/result.h"
#include "store/sql/postgres_settings.h"

namespace conversed::store {

// Listens for changes that other daemons commit; commits and triggers of the schema send them. A
// cache is stale while a notification travels, well below a second, and while this connection is
// down. The watch asks the server every 5 s, and within a second once another connection found it
// silent, and tells the pulse whether it answers. A question to a silent server waits for its
// answer, so the server is found at once when it answers again. Kept by:
// PostgresTest.WatchHearsOfChangesAlsoAfterItsSessionBroke.
//
// One thread of its own. `start` and `stop` belong to one thread; `stop` tolerates double stop and
// stop without start.
class PostgresWatch {
 public:
  // A notification as it was sent (store/cluster/notifications.h); empty: notifications may have
  // been lost. Called on the watch's thread.
  using Changed = std::function<void(std::string_view topic)>;

  // `pulse` must outlive it.
  PostgresWatch(PostgresSettings settings, Changed changed, PostgresPulse& pulse);
  ~PostgresWatch();
  PostgresWatch(const PostgresWatch&) = delete;
  PostgresWatch& operator=(const PostgresWatch&) = delete;

  // `unavailable` if the system has no descriptor or thread left. The watch tries an absent server
  // again and again.
  [[nodiscard]] model::Result<void> start();
  void stop();

 private:
  void loop();
  void listen();
  [[nodiscard]] bool stopped_within(int timeout_ms) const;

  const PostgresSettings settings_;
  const Changed changed_;
  PostgresPulse& pulse_;
  int stop_event_ = -1;
  std::thread thread_;
};

}  // namespace conversed::store
