#include "daemon/app_ground.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "daemon/ops/logging.h"

namespace conversed::daemon {

Ground::Ground(const Outside& outside, std::unique_ptr<store::Store> opened_store,
               OpenedLog& opened_log)
    : Outside(outside),
      store(std::move(opened_store)),
      stored_keys(std::move(opened_log.stored_keys)),
      log(std::move(opened_log.log)),
      events(*log, *opened_log.keyed),
      metrics(door.metrics()) {}

bool Ground::has(config::Role role) const {
  return std::ranges::find(settings.roles, role) != settings.roles.end();
}

AppendEvent Ground::append_event() {
  return
      [this](const model::Event& event, std::function<void(model::Result<queue::Appended>)> done) {
        events.append(event, std::move(done));
      };
}

void Ground::die(const model::Error& error) {
  if (failed.exchange(true)) return;
  log::error("consumption has to stop", {{"error", error.message}});
  kill(getpid(), SIGTERM);
}

}  // namespace conversed::daemon
