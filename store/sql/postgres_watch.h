#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "store/model/result.h"
#include "store/sql/postgres_pulse.h"
#include "store/sql/postgres_settings.h"

namespace conversed::store {

// Hears of what other daemons commit: triggers of the schema notify, this listens. So a cache is
// stale for as long as a notification travels, well below a second; while the connection is down it
// may be stale for longer, but then the store mostly is, too. Once a second it asks the server, and
// tells the pulse whether it answers.
//
// One thread of its own. `start` and `stop` belong to one thread; `stop` tolerates double stop and
// stop without start.
class PostgresWatch {
 public:
  // The topic that changed, as the triggers name it: "assets", "lexicons", "people"; empty if it
  // may have been any. Called on the watch's thread.
  using Changed = std::function<void(std::string_view topic)>;

  // `pulse` must outlive it.
  PostgresWatch(PostgresSettings settings, Changed changed, PostgresPulse& pulse);
  ~PostgresWatch();
  PostgresWatch(const PostgresWatch&) = delete;
  PostgresWatch& operator=(const PostgresWatch&) = delete;

  // `unavailable` if the system has no descriptor or thread left. A server that is away is tried
  // until it is there.
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
