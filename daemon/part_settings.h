#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "api/auth/jwks_file.h"
#include "api/auth/lockout.h"
#include "api/http/http_server.h"
#include "api/live/rate_limiter.h"
#include "api/services.h"
#include "config/settings.h"
#include "daemon/calls/caller.h"
#include "daemon/cluster/peers.h"
#include "daemon/data/housekeeper.h"
#include "daemon/data/storage_settings.h"
#include "daemon/delivery/deliverer.h"
#include "daemon/jobs/job_worker.h"
#include "daemon/jobs/proactive_setup.h"
#include "daemon/outbound/http_client.h"
#include "flows/turn/turn.h"
#include "queue/lanes.h"
#include "store/model/clock.h"
#include "store/runtime/heartbeat.h"

// From what an operator sets to what each part takes.
namespace conversed::daemon {

// The daemon's roles, as settings name them.
[[nodiscard]] std::vector<std::string> role_names(const config::Settings& settings);
[[nodiscard]] PeersSettings peers_settings(const config::Settings& settings,
                                           std::string previous_run);
[[nodiscard]] api::ApiOptions api_options(const config::Settings& settings,
                                          model::Timestamp started_at);
// Of the API's listener; what calls back is left to the caller.
[[nodiscard]] api::HttpSettings http_settings(const config::Settings& settings);
[[nodiscard]] api::LockoutLimits lockout_limits(const config::SignInSettings& settings);
[[nodiscard]] flows::Limits flow_limits(const config::FlowSettings& settings,
                                        const config::CallSettings& calls);
[[nodiscard]] HttpClientSettings client_settings(std::string name, std::size_t connections,
                                                 model::Heartbeats& heartbeats);
[[nodiscard]] queue::LanesSettings lanes_settings(const config::Settings& settings,
                                                  model::Heartbeats& heartbeats);
[[nodiscard]] api::RateLimits rate_limits(const config::LimitSettings& settings);
[[nodiscard]] api::RateLimits public_rate_limits(const config::LimitSettings& settings);
[[nodiscard]] DelivererSettings deliverer_settings(const config::DeliverySettings& settings,
                                                   model::Heartbeats& heartbeats);
[[nodiscard]] CallerSettings caller_settings(const config::Settings& all,
                                             model::Heartbeats& heartbeats);
[[nodiscard]] ProactiveSetupSettings proactive_setup_settings(const config::Settings& settings);
[[nodiscard]] JobWorkerSettings job_worker_settings(const config::Settings& settings,
                                                    std::function<void(const std::string&)> wake);
[[nodiscard]] HousekeeperSettings housekeeper_settings(const config::Settings& settings,
                                                       std::function<void()> also);

}  // namespace conversed::daemon
