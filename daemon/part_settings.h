#pragma once

#include <cstddef>
#include <string>

#include "api/auth/lockout.h"
#include "api/http_server.h"
#include "api/services.h"
#include "config/settings.h"
#include "daemon/caller.h"
#include "daemon/deliverer.h"
#include "daemon/http_client.h"
#include "flows/turn.h"
#include "queue/kafka_log.h"
#include "store/model/clock.h"
#include "store/store.h"

// From what an operator sets to what each part takes.
namespace conversed::daemon {

[[nodiscard]] api::ApiOptions api_options(const config::Settings& settings,
                                          model::Timestamp started_at);
// Of the API's listener; what calls back is left to the caller.
[[nodiscard]] api::HttpSettings http_settings(const config::Settings& settings);
[[nodiscard]] api::LockoutLimits lockout_limits(const config::SignInSettings& settings);
[[nodiscard]] flows::Limits flow_limits(const config::FlowSettings& settings);
[[nodiscard]] HttpClientSettings client_settings(std::string name, std::size_t connections);
[[nodiscard]] DelivererSettings deliverer_settings(const config::DeliverySettings& settings);
// Reports go to the log of this process.
[[nodiscard]] queue::KafkaLogSettings kafka_log_settings(const config::Settings& settings);
[[nodiscard]] store::StoreSettings store_settings(const config::Settings& settings);
[[nodiscard]] CallerSettings caller_settings(const config::CallSettings& settings);

}  // namespace conversed::daemon
