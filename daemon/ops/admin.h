#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/http/http_server.h"
#include "config/settings.h"
#include "store/model/result.h"

namespace conversed::daemon {

// The admin listener's sources. Called on its thread; must not block.
struct AdminSources {
  // Why the daemon is not ready; empty if it is (it consumes, log and store are healthy).
  std::function<std::string_view()> not_ready;
  std::function<std::string()> metrics;  // Prometheus text format 0.0.4
};

// `/healthz` (200 while the process serves), `/readyz` (200, or 503 with the reason) and
// `/metrics`, on a listener of their own. Its threads have heartbeats among these, which must
// outlive it.
[[nodiscard]] model::Result<std::unique_ptr<api::HttpServer>> open_admin_server(
    const config::AdminSettings& settings, AdminSources sources, model::Heartbeats& heartbeats);

}  // namespace conversed::daemon
