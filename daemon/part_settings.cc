#include "daemon/part_settings.h"

#include <algorithm>
#include <utility>

#include "config/warnings.h"
#include "daemon/ops/version.h"

namespace conversed::daemon {

using std::chrono::milliseconds;

std::vector<std::string> role_names(const config::Settings& settings) {
  std::vector<std::string> names;
  for (const auto role : settings.roles) names.emplace_back(to_string(role));
  return names;
}

PeersSettings peers_settings(const config::Settings& settings, std::string previous_run) {
  PeersSettings peers;
  peers.name = member_name(settings);
  peers.roles = role_names(settings);
  peers.version = version;
  peers.previous_run = std::move(previous_run);
  return peers;
}

api::ApiOptions api_options(const config::Settings& settings, model::Timestamp started_at) {
  api::ApiOptions options;
  options.api = settings.api;
  options.limits = settings.limits;
  options.quota = model::Live<config::QuotaSettings>(settings.quota);
  options.proactive = settings.proactive;
  options.oauth = settings.oauth;
  options.warnings = config::warnings_of(settings);
  options.version = version;
  options.member_name = member_name(settings);
  options.started_at = started_at;
  return options;
}

api::HttpSettings http_settings(const config::Settings& settings) {
  api::HttpSettings http;
  http.address = settings.listen.address;
  http.port = settings.listen.port;
  http.threads = settings.api.threads;
  for (const auto& proxy : settings.trusted_proxies) {
    if (const auto range = config::AddressRange::parse(proxy)) {
      http.trusted_proxies.push_back(*range);
    }
  }
  http.max_header = settings.api.max_header_bytes;
  http.max_body = settings.api.max_body_bytes;
  http.max_large_bodies = settings.limits.large_bodies_bytes;
  http.header_timeout = settings.api.header_timeout;
  http.body_timeout = settings.api.body_timeout;
  http.idle_timeout = settings.api.idle_timeout;
  http.max_connections = settings.limits.connections;
  http.max_connections_per_address = settings.limits.connections_per_address;
  return http;
}

api::LockoutLimits lockout_limits(const config::SignInSettings& settings) {
  return {.account_failures = settings.account_failures,
          .address_failures = settings.address_failures,
          .window = settings.lockout};
}

flows::Limits flow_limits(const config::FlowSettings& settings, const config::CallSettings& calls) {
  flows::Limits limits;
  limits.nodes_per_turn = settings.max_steps;
  limits.visits_per_node = settings.max_visits;
  limits.outputs_per_turn = settings.max_outputs;
  limits.context_bytes = settings.max_context_bytes;
  limits.profile_bytes = settings.max_profile_bytes;
  limits.output_bytes = settings.max_output_bytes;
  limits.call_bytes = settings.max_call_bytes;
  limits.slot_hits = settings.max_slot_hits;
  limits.slot_bytes = settings.max_slots_bytes;
  limits.call_timeout = calls.timeout;
  return limits;
}

HttpClientSettings client_settings(std::string name, std::size_t connections,
                                   model::Heartbeats& heartbeats) {
  HttpClientSettings settings;
  settings.heartbeats = &heartbeats;
  settings.name = std::move(name);
  settings.max_in_flight = connections;
  return settings;
}

queue::LanesSettings lanes_settings(const config::Settings& settings,
                                    model::Heartbeats& heartbeats) {
  queue::LanesSettings lanes;
  lanes.workers = settings.workers;
  lanes.in_flight_limit = settings.limits.in_flight;
  lanes.heartbeats = &heartbeats;
  return lanes;
}

api::RateLimits rate_limits(const config::LimitSettings& settings) {
  return {.requests_per_second = settings.requests_per_second, .burst = settings.burst};
}

api::RateLimits public_rate_limits(const config::LimitSettings& settings) {
  return {.requests_per_second = settings.public_requests_per_second, .burst = settings.burst};
}

DelivererSettings deliverer_settings(const config::DeliverySettings& settings,
                                     model::Heartbeats& heartbeats) {
  DelivererSettings deliverer;
  deliverer.heartbeats = &heartbeats;
  deliverer.timeout = settings.timeout;
  deliverer.retry_for = settings.retry_for;
  deliverer.connections = settings.connections;
  deliverer.secret_overlap = settings.secret_overlap;
  deliverer.drain_timeout = std::min<milliseconds>(settings.timeout, milliseconds(3'000));
  return deliverer;
}

HousekeeperSettings housekeeper_settings(const config::Settings& settings,
                                         std::function<void()> also) {
  HousekeeperSettings housekeeper;
  housekeeper.also = std::move(also);
  housekeeper.transcripts = settings.retention.transcripts;
  housekeeper.dead_letters = settings.retention.dead_letters;
  housekeeper.audit = settings.retention.audit;
  housekeeper.secret_overlap = settings.delivery.secret_overlap;
  return housekeeper;
}

CallerSettings caller_settings(const config::Settings& all, model::Heartbeats& heartbeats) {
  const config::CallSettings& settings = all.calls;
  CallerSettings caller;
  caller.heartbeats = &heartbeats;
  caller.model_tokens_per_month = all.quota.model_tokens_per_month;
  caller.max_response_bytes = settings.max_response_bytes;
  caller.max_requests = settings.connections;
  // One slow upstream leaves half of the connections to the others.
  caller.max_per_upstream = std::max<std::size_t>(1, settings.connections / 2);
  // And one project with several of them a quarter.
  caller.max_per_project = std::max<std::size_t>(1, std::size_t{settings.connections} * 3 / 4);
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

JobWorkerSettings job_worker_settings(const config::Settings& settings,
                                      std::function<void(const std::string&)> wake) {
  JobWorkerSettings worker;
  worker.wake = std::move(wake);
  worker.retention = settings.jobs.retention;
  // Where nobody ends the leases of a daemon that crashed, its jobs wait for their end.
  if (in_cluster(settings)) worker.lease = milliseconds(15'000);
  return worker;
}

}  // namespace conversed::daemon
