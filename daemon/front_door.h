#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "api/http/http_server.h"
#include "api/router.h"
#include "config/settings.h"
#include "daemon/data/data_folder.h"
#include "daemon/ops/error_log.h"
#include "daemon/ops/metrics.h"
#include "daemon/telemetry/spans.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/runtime/heartbeat.h"

namespace conversed::daemon {

// The daemon's listeners, and the data folder with their ports. It can listen before the store is
// open: until `open`, every request is answered 503 and `/readyz` says 503.
//
// `listen`, `open`, `drain` and `stop` belong to one thread, the rest is thread-safe unless it says
// otherwise.
//
// If PostgreSQL is away at the start, the daemon listens and waits for it. An error that a retry
// can't mend ends the start: a newer schema, another master key, an invalid URL. A refused password
// is tried again and logged once, since operators change it while the daemon runs.
// Kept by: test_postgres.py LateServers.
class FrontDoor {
 public:
  // All but the folder must outlive it. `spans`: of the requests; null: none are made.
  FrontDoor(const config::Settings& settings, const model::Clock& clock,
            model::Heartbeats& heartbeats, DataFolder folder, Spans* spans);
  ~FrontDoor();  // stops
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;

  // Listens, and writes `run/ports.json`. Does nothing if it listens already.
  [[nodiscard]] model::Result<void> listen();

  // From now on requests reach the operations. `not_ready` returns why the daemon is not ready, or
  // an empty text; it must not block. Both must live until `stop`. After `listen`.
  void open(api::Services& services, std::function<std::string_view()> not_ready);

  // Writes `run/ports.json` if an earlier try failed, as on a full disk. One thread at a time;
  // before `listen` it does nothing.
  void write_ports();

  // As HttpServer::drain; true without a listener of the API.
  [[nodiscard]] bool drain(std::chrono::milliseconds limit);
  void stop_api();
  // Stops both listeners and removes `run/ports.json`.
  void stop();

  [[nodiscard]] bool has_api() const { return api_ != nullptr; }
  [[nodiscard]] const DataFolder& folder() const { return folder_; }
  [[nodiscard]] Metrics& metrics() { return metrics_; }

 private:
  [[nodiscard]] model::Result<void> open_api();
  // `/healthz` (200 while the process serves), `/readyz` (200, or 503 with the reason) and
  // `/metrics`, on the admin listener's thread. Never blocks.
  void answer_admin(const api::Request& request, api::Reply reply);
  [[nodiscard]] std::string_view not_ready() const;

  const config::Settings& settings_;
  const model::Clock& clock_;
  model::Heartbeats& heartbeats_;
  const DataFolder folder_;
  Spans* const spans_;
  Metrics metrics_;
  ErrorLog error_log_;
  api::Router router_;
  std::function<std::string_view()> not_ready_;
  std::atomic<bool> open_{false};     // once true, `not_ready_` does not change
  std::atomic<bool> listens_{false};  // once true, the servers do not change
  std::mutex ports_mutex_;            // held while the file is written
  bool ports_written_ = false;
  std::unique_ptr<api::HttpServer> api_;
  std::unique_ptr<api::HttpServer> admin_;
};

}  // namespace conversed::daemon
