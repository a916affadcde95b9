#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "config/settings.h"
#include "daemon/front_door.h"
#include "daemon/service/supervisor.h"
#include "daemon/telemetry/span_exporter.h"
#include "daemon/timers/timer_clock.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/runtime/heartbeat.h"

namespace conversed::store {
class Store;
}

namespace conversed::daemon {

// The daemon: owns every part, wires them, starts them in the order in which they need each other
// and stops them in reverse. One thread at a time, but for `give_up_start`; SIGTERM is blocked in
// all threads before `start`.
//
// Invariants:
// - A role that is left out starts nothing. Without `api` only the admin listener listens. Without
//   `worker` there are no consumption, calls, deliveries or jobs. Without `scheduler` there are no
//   timers and no retention.
//   Kept by: test_cluster.py Roles.
// - A stop ends a start: `give_up_start` ends the copy, the migration and each wait for a store.
//   Kept by: test_service.py StoreThatFails.test_a_start_that_waits_for_the_store_obeys_a_stop.
// - A start that fails before it consumes the log leaves the last run's notes to the next start.
//   Kept by: test_failures.py FailedStarts.
// - `ready` is logged once the log is consumed. Events that run alone do not delay it.
//   Kept by: test_service.py AfterAKill.test_ready_does_not_wait_for_events_in_hand.
// - Services stop in the reverse order of starting, the Committer and the log last, so that every
//   mark is kept. Kept by: test_kafka.py
//   TheMainJob.test_each_event_runs_once_and_in_order_across_a_clean_stop.
class App {
 public:
  // `clock` must outlive it.
  App(config::Settings settings, const model::Clock& clock);
  ~App();  // stops
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  // Opens the data folder, recovers what the last run left, listens and consumes. Writes
  // `run/ports.json` once it listens, and logs `ready` once it consumes. On an error nothing runs.
  // At most once. May wait for a long time: while an old store is copied and migrated, while
  // the store fails, or until PostgreSQL is there.
  [[nodiscard]] model::Result<void> start();

  // Thread-safe. Makes a `start` that runs on another thread return soon, with an error unless it
  // was almost done. Does nothing after the start.
  void give_up_start();

  // Takes over the new settings that can change while the daemon runs. Logs which ones it has taken
  // and which need a restart. `read` returns the settings, or nothing if they are refused: then it
  // has logged why, and nothing changes. After `start`.
  void reload(const std::function<std::optional<config::Settings>()>& read);

  // Drains within `shutdown_timeout`: takes no new requests, answers accepted ones, commits Turns
  // in hand, and ends calls and deliveries in flight. Unfinished work stays in log and store.
  // Tolerates double stop and stop without start.
  void stop();

  // Whether a defect ended the daemon. It has then logged the reason and sent SIGTERM to itself.
  [[nodiscard]] bool failed() const;

 private:
  struct Parts;
  [[nodiscard]] model::Result<void> open_and_start();
  [[nodiscard]] model::Result<std::unique_ptr<store::Store>> wait_for_store();
  [[nodiscard]] model::Result<void> start_exporter();
  [[nodiscard]] Progress progress();
  config::Settings settings_;  // `reload` changes some of them
  const model::Clock& clock_;
  TimerClock timer_clock_;
  bool failed_ = false;

  std::stop_source given_up_;
  std::atomic<bool> store_away_{false};
  std::atomic<Parts*> watched_{nullptr};  // the parts, for the Supervisor
  model::Heartbeats heartbeats_;
  Supervisor supervisor_;
  std::mutex starting_;  // guards `started_`, and `parts_` against `give_up_start`
  bool started_ = false;
  Spans spans_;
  std::optional<SpanExporter> exporter_;  // none: no traces are exported
  std::optional<FrontDoor> door_;         // outlives the parts, to which it passes requests
  std::unique_ptr<Parts> parts_;
};

}  // namespace conversed::daemon
