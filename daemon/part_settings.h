#pragma once

#include <cstddef>
#include <string>

#include "api/auth/lockout.h"
#include "api/services.h"
#include "config/settings.h"
#include "daemon/caller.h"
#include "daemon/deliverer.h"
#include "daemon/http_client.h"
#include "daemon/job_worker.h"
#include "daemon/proactive_setup.h"
#include "flows/turn.h"
#include "store/model/clock.h"

// From what an operator sets to what each part takes.
namespace conversed::daemon {

[[nodiscard]] api::ApiOptions api_options(const config::Settings& settings,
                                          model::Timestamp started_at);
[[nodiscard]] api::LockoutLimits lockout_limits(const config::SignInSettings& settings);
[[nodiscard]] flows::Limits flow_limits(const config::FlowSettings& settings);
[[nodiscard]] HttpClientSettings client_settings(std::string name, std::size_t connections);
[[nodiscard]] DelivererSettings deliverer_settings(const config::DeliverySettings& settings);
[[nodiscard]] CallerSettings caller_settings(const config::CallSettings& settings);
[[nodiscard]] ProactiveSetupSettings proactive_setup_settings(const config::Settings& settings);
[[nodiscard]] JobWorkerSettings job_worker_settings(const config::JobSettings& settings);

}  // namespace conversed::daemon
