#pragma once

#include <atomic>
#include <memory>

#include "api/live/events.h"
#include "config/settings.h"
#include "daemon/data/storage.h"
#include "daemon/front_door.h"
#include "daemon/log/append_event.h"
#include "daemon/service/supervisor.h"
#include "daemon/telemetry/spans.h"
#include "daemon/timers/timer_clock.h"
#include "store/runtime/heartbeat.h"

// For app*.cc only.
namespace conversed::daemon {

// The parts that App owns before it has a store and a log. They outlive all groups.
struct Outside {
  const config::Settings& settings;
  const model::Clock& clock;
  model::Heartbeats& heartbeats;
  Supervisor& supervisor;
  FrontDoor& door;
  TimerClock& timer_clock;
  Spans* spans;  // null: no traces are exported
};

// The parts that all groups use: the store, the log, and the state of the daemon.
struct Ground : Outside {
  Ground(const Outside& outside, std::unique_ptr<store::Store> opened_store, OpenedLog& opened_log);

  [[nodiscard]] bool has(config::Role role) const;
  [[nodiscard]] AppendEvent append_event();
  // Ends the daemon after an error that it can't survive: logs the error and sends SIGTERM to
  // itself. Thread-safe.
  void die(const model::Error& error);

  const std::unique_ptr<store::Store> store;
  const std::unique_ptr<queue::KeyedAppend> stored_keys;  // outlives the log, which calls it back
  const std::unique_ptr<queue::Log> log;
  api::Events events;
  Metrics& metrics;
  // True once the log is consumed: by this daemon or, without the role of a worker, maybe by
  // others.
  std::atomic<bool> consuming{false};
  std::atomic<bool> failed{false};
};

}  // namespace conversed::daemon
