#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "queue/log.h"

namespace conversed::queue {

// How existing topics are checked.
enum class KafkaTopicCheck : std::uint8_t {
  full,              // partitions, leaders and settings
  without_settings,  // for brokers that can't tell the settings, such as librdkafka's mock
};

struct KafkaLogSettings {
  std::vector<std::string> bootstrap_servers;  // host:port
  // Names the consumer group. The topics are PREFIX.events, PREFIX.deadletters, PREFIX.epochs.
  std::string topic_prefix = "conversed";
  // Whether a record has had its effects although its position is not committed. Then `new_epoch`,
  // which calls this, does not move it to another partition. Empty: no such record has had effects.
  std::function<Result<bool>(const LogRecord&)> is_finished{};
  // Together with the number of partitions, names this reader within the group. Constant from start
  // to start, so that the reader keeps its partitions while it restarts.
  std::string instance_id;
  // Any properties of librdkafka, except those that the daemon's promises need. Values may be
  // secrets and appear in no message.
  std::vector<std::pair<std::string, std::string>> properties;
  std::int32_t partitions = 8;  // of a topic that is made here; an existing topic keeps its number

  // Bounds on the records that wait for their delivery. Above either, appends are refused with
  // `too_many`.
  std::size_t max_waiting_records = 65'536;
  std::size_t max_waiting_bytes = std::size_t{64} << 20;

  // The longest time from the append until its outcome is told.
  std::chrono::milliseconds delivery_timeout{10'000};
  // The time-out of one question to the brokers: offsets, commits, topics.
  std::chrono::milliseconds request_timeout{5'000};
  KafkaTopicCheck topic_check = KafkaTopicCheck::full;
  // Between looks at the brokers' health.
  std::chrono::milliseconds probe_interval{2'000};
  // How long `stop` waits for the outcomes of appends in hand.
  std::chrono::milliseconds stop_timeout{5'000};
  // Finished records are deleted once there are this many, or after `prune_interval`.
  std::int64_t prune_after_records = 8'192;
  std::chrono::milliseconds prune_interval{60'000};

  // Called with facts for operators that no caller gets as an error. Called on any thread; must not
  // block. The texts contain no secrets. May be empty.
  std::function<void(const std::string&)> report;
};

// The problems of KafkaLogSettings::properties. Each names the property and never its value. Empty:
// librdkafka accepts all properties and values.
[[nodiscard]] std::vector<std::string> kafka_property_problems(
    const std::vector<std::pair<std::string, std::string>>& properties);

// Opens the driver for Apache Kafka, on librdkafka. The Log is thread-safe, but for destruction.
//
// Only its delivery report answers an append (idempotent producer, acks=all). A permanently failed
// producer is replaced: records that certainly were not stored are sent again, records that may
// have been stored are `timed_out`. Appends are refused at once while the brokers are known to be
// away, or before the topics have been checked.
//
// There is one consumer at a time, a static member of the log's group with a share of the
// partitions. Records that it can't read (README.md has the format) go to PREFIX.deadletters, at
// least once, and then count as finished.
//
// `ranges` and `subscribe` wait for the first look at the brokers. Their error is also `conflict`
// for topics whose settings would lose or disorder records. Once the topics have been checked,
// `subscribe` works while the brokers are away. `new_epoch`, for a time without consumers, also
// adopts a changed number of partitions: it appends unfinished records again, to the partitions of
// their keys, unless they have no order to keep.
//
// Threads: one serves the producer and calls back, one checks the brokers and the topics, and
// librdkafka has its own.
//
// Starts to connect and does not wait for it: problems with brokers or topics are in `health` and
// in the errors of other calls. Errors: `invalid_argument` (settings).
[[nodiscard]] Result<std::unique_ptr<Log>> open_kafka_log(KafkaLogSettings settings);

}  // namespace conversed::queue
