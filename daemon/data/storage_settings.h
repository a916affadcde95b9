#pragma once

#include <string>
#include <vector>

#include "config/settings.h"
#include "queue/kafka/kafka_log.h"
#include "store/store.h"

// Makes the settings of the store and the log from an operator's settings. Pure; thread-safe.
namespace conversed::daemon {

// This daemon's name among the daemons that share its store and log: `cluster.name`, else the
// host's name and a hash of the data folder, which stay the same from start to start.
[[nodiscard]] std::string member_name(const config::Settings& settings);
// Whether other daemons may share the store and the log.
[[nodiscard]] bool in_cluster(const config::Settings& settings);
// Kafka's reports become lines of this process's log.
[[nodiscard]] queue::KafkaLogSettings kafka_log_settings(const config::Settings& settings);
[[nodiscard]] queue::KafkaLogSettings kafka_jobs_settings(const config::Settings& settings);
// `place` tells whether other daemons may open the same store.
[[nodiscard]] store::StoreSettings store_settings(const config::Settings& settings,
                                                  store::PostgresSettings::Place place);
// The problems of the properties for Kafka's client. They name no value.
[[nodiscard]] std::vector<std::string> kafka_problems(const config::KafkaSettings& settings);

}  // namespace conversed::daemon
