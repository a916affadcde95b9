#include "daemon/data/storage_settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "daemon/ops/logging.h"
#include "queue/log.h"

namespace conversed::daemon {

namespace {

std::vector<std::pair<std::string, std::string>> properties_of(const config::KafkaSettings& kafka) {
  std::vector<std::pair<std::string, std::string>> properties;
  for (const auto& [name, value] : kafka.properties) properties.emplace_back(name, value.reveal());
  return properties;
}

}  // namespace

// The default is constant over starts, and unique among the daemons of a host, since each locks its
// data folder.
std::string member_name(const config::Settings& settings) {
  if (!settings.cluster.name.empty()) return settings.cluster.name;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::error_code failed;
  const auto path = std::filesystem::weakly_canonical(settings.data_dir, failed);
  const auto number = queue::partition_of((failed ? settings.data_dir : path).string(),
                                          std::numeric_limits<std::int32_t>::max());
  return std::string(host.data()) + "-" + std::to_string(number);
}

bool in_cluster(const config::Settings& settings) {
  return settings.store.driver == config::StoreDriver::postgres;
}

std::vector<std::string> kafka_problems(const config::KafkaSettings& settings) {
  return queue::kafka_property_problems(properties_of(settings));
}

queue::KafkaLogSettings kafka_log_settings(const config::Settings& settings) {
  const config::KafkaSettings& kafka = settings.queue.kafka;
  queue::KafkaLogSettings log;
  log.bootstrap_servers = kafka.bootstrap_servers;
  log.topic_prefix = kafka.topic_prefix;
  log.instance_id = kafka.instance_id.empty() ? member_name(settings) : kafka.instance_id;
  log.properties = properties_of(kafka);
  log.partitions = static_cast<std::int32_t>(settings.queue.partitions);
  log.delivery_timeout = kafka.delivery_timeout;
  log.report = [](const std::string& what) { log::warn("kafka", {{"message", what}}); };
  return log;
}

queue::KafkaLogSettings kafka_jobs_settings(const config::Settings& settings) {
  queue::KafkaLogSettings log = kafka_log_settings(settings);
  log.stream = "jobs";
  log.ordered = false;
  return log;
}

store::StoreSettings store_settings(const config::Settings& settings,
                                    store::PostgresSettings::Place place) {
  store::StoreSettings store;
  store.data_dir = settings.data_dir;
  store.master_key = settings.master_key;
  // One for each worker, reactor thread, management thread, the sign-in and the import thread, and
  // some for the services, so that no thread waits for one.
  store.readers = std::min<std::size_t>(64, settings.workers + settings.api.threads + 15);
  if (settings.store.driver == config::StoreDriver::postgres) {
    store.postgres = store::PostgresSettings{.url = settings.store.postgres.url.reveal(),
                                             .timeout = settings.store.postgres.timeout,
                                             // Before the statement's own limit, which says less.
                                             .turn_timeout = settings.store.postgres.timeout / 2,
                                             .place = place};
  }
  return store;
}

}  // namespace conversed::daemon
