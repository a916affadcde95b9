#include "daemon/part_settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "daemon/logging.h"
#include "daemon/version.h"

namespace conversed::daemon {

using std::chrono::milliseconds;

namespace {

// The same from start to start, and another one for each daemon of a host: its data folder is
// locked.
std::string instance_of(const std::filesystem::path& data_dir) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::error_code failed;
  const auto path = std::filesystem::weakly_canonical(data_dir, failed);
  const auto number = queue::partition_of((failed ? data_dir : path).string(),
                                          std::numeric_limits<std::int32_t>::max());
  return std::string(host.data()) + "-" + std::to_string(number);
}

}  // namespace

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

api::HttpSettings http_settings(const config::Settings& settings) {
  api::HttpSettings http;
  http.address = settings.listen.address;
  http.port = settings.listen.port;
  http.threads = settings.api.threads;
  http.max_header = settings.api.max_header_bytes;
  http.max_body = settings.api.max_body_bytes;
  http.max_large_bodies = settings.limits.large_bodies_bytes;
  http.header_timeout = settings.api.header_timeout;
  http.body_timeout = settings.api.body_timeout;
  http.idle_timeout = settings.api.idle_timeout;
  http.max_connections = settings.limits.connections;
  return http;
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
  limits.output_bytes = settings.max_output_bytes;
  limits.call_bytes = settings.max_call_bytes;
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

queue::KafkaLogSettings kafka_log_settings(const config::Settings& settings) {
  const config::KafkaSettings& kafka = settings.queue.kafka;
  queue::KafkaLogSettings log;
  log.bootstrap_servers = kafka.bootstrap_servers;
  log.topic_prefix = kafka.topic_prefix;
  log.instance_id = kafka.instance_id.empty() ? instance_of(settings.data_dir) : kafka.instance_id;
  for (const auto& [name, value] : kafka.properties) {
    log.properties.emplace_back(name, value.reveal());
  }
  log.partitions = static_cast<std::int32_t>(settings.queue.partitions);
  log.delivery_timeout = kafka.delivery_timeout;
  log.report = [](const std::string& what) { log::warn("kafka", {{"message", what}}); };
  return log;
}

store::StoreSettings store_settings(const config::Settings& settings) {
  store::StoreSettings store;
  store.data_dir = settings.data_dir;
  // One for each worker, reactor thread, management thread and the sign-in thread, and some for
  // the services, so that none waits.
  store.readers = std::min<std::size_t>(64, settings.workers + settings.api.threads + 10);
  if (settings.store.driver == config::StoreDriver::postgres) {
    // Two daemons would make each other's calls and deliveries.
    store.postgres =
        store::PostgresSettings{.url = settings.store.postgres.url.reveal(), .alone = true};
  }
  return store;
}

CallerSettings caller_settings(const config::CallSettings& settings) {
  CallerSettings caller;
  caller.max_response_bytes = settings.max_response_bytes;
  // One slow upstream leaves half of the connections to the others.
  caller.max_per_upstream = std::max<std::size_t>(1, settings.connections / 2);
  return caller;
}

}  // namespace conversed::daemon
