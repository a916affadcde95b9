#include "daemon/part_settings.h"

#include <algorithm>
#include <utility>

#include "daemon/version.h"

namespace conversed::daemon {

using std::chrono::milliseconds;

api::ApiOptions api_options(const config::Settings& settings, model::Timestamp started_at) {
  api::ApiOptions options;
  options.api = settings.api;
  options.limits = settings.limits;
  options.quota = settings.quota;
  options.proactive = settings.proactive;
  options.oauth = settings.oauth;
  options.version = version;
  options.started_at = started_at;
  return options;
}

api::LockoutLimits lockout_limits(const config::SignInSettings& settings) {
  return {.account_failures = settings.account_failures,
          .address_failures = settings.address_failures,
          .duration = settings.lockout};
}

flows::Limits flow_limits(const config::FlowSettings& settings) {
  flows::Limits limits;
  limits.nodes_per_turn = settings.max_steps;
  limits.visits_per_node = settings.max_visits;
  limits.outputs_per_turn = settings.max_outputs;
  limits.context_bytes = settings.max_context_bytes;
  limits.profile_bytes = settings.max_profile_bytes;
  return limits;
}

HttpClientSettings client_settings(std::string name, std::size_t connections) {
  HttpClientSettings settings;
  settings.name = std::move(name);
  settings.max_in_flight = connections;
  return settings;
}

DelivererSettings deliverer_settings(const config::DeliverySettings& settings) {
  DelivererSettings deliverer;
  deliverer.timeout = settings.timeout;
  deliverer.retry_for = settings.retry_for;
  deliverer.connections = settings.connections;
  deliverer.drain_timeout = std::min<milliseconds>(settings.timeout, milliseconds(3'000));
  return deliverer;
}

CallerSettings caller_settings(const config::CallSettings& settings) {
  CallerSettings caller;
  caller.max_response_bytes = settings.max_response_bytes;
  // One slow upstream leaves half of the connections to the others.
  caller.max_per_upstream = std::max<std::size_t>(1, settings.connections / 2);
  return caller;
}

ProactiveSetupSettings proactive_setup_settings(const config::Settings& settings) {
  const config::ProvisioningSettings& provisioning = settings.proactive.provisioning;
  ProactiveSetupSettings setup;
  setup.follow_ups_per_month = static_cast<std::int64_t>(settings.quota.follow_ups_per_month);
  setup.provisioning_url = provisioning.url;
  while (setup.provisioning_url.ends_with('/')) setup.provisioning_url.pop_back();
  setup.provisioning_token = provisioning.token.reveal();
  setup.timeout = provisioning.timeout;
  setup.retry_for = provisioning.retry_for;
  return setup;
}

JobWorkerSettings job_worker_settings(const config::JobSettings& settings) {
  JobWorkerSettings worker;
  worker.retention = settings.retention;
  return worker;
}

}  // namespace conversed::daemon
