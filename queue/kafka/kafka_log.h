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

// What is looked at of topics that are there.
enum class KafkaTopicCheck : std::uint8_t {
  full,              // partitions, leaders and settings
  without_settings,  // for brokers that can't tell the settings, as librdkafka's mock of them
};

struct KafkaLogSettings {
  std::vector<std::string> bootstrap_servers;  // host:port
  // Names the consumer group. The topics are PREFIX.events, PREFIX.deadletters, PREFIX.epochs.
  std::string topic_prefix = "conversed";
  // Whether a record has had its effects though its position is not committed: it is not moved when
  // the number of partitions has changed. Empty: none has. Called by `new_epoch`.
  std::function<Result<bool>(const LogRecord&)> is_finished{};
  // Names this reader among those of the group, together with the number of partitions, and stays
  // the same from start to start: what it read is kept for it while it restarts.
  std::string instance_id;
  // Any of librdkafka's, but for those that the promises rest on. Values may be secrets: they are
  // in no message.
  std::vector<std::pair<std::string, std::string>> properties;
  std::int32_t partitions = 8;  // of a topic that is made here; one that is there keeps its number

  // Bounds on what waits for its delivery; above either, appends are refused with `too_many`.
  std::size_t max_waiting_records = 65'536;
  std::size_t max_waiting_bytes = std::size_t{64} << 20;

  // From the append until its outcome is told, at most.
  std::chrono::milliseconds delivery_timeout{10'000};
  // For one question to the brokers: offsets, commits, topics.
  std::chrono::milliseconds request_timeout{5'000};
  KafkaTopicCheck topic_check = KafkaTopicCheck::full;
  // Between looks at the brokers' health.
  std::chrono::milliseconds probe_interval{1'000};
  // How long `stop` waits for the outcomes of what is in hand.
  std::chrono::milliseconds stop_timeout{5'000};
  // Finished records are deleted once this many have gathered, or after `prune_interval`.
  std::int64_t prune_after_records = 8'192;
  std::chrono::milliseconds prune_interval{60'000};

  // Told facts that operators should know and that no caller hears of; from any thread, must not
  // block. Holds no secret. May be empty.
  std::function<void(const std::string&)> report;
};

// What is wrong with properties as KafkaLogSettings has them, each in a few words that name the
// property and never its value. Empty: librdkafka knows all of them, and takes their values.
[[nodiscard]] std::vector<std::string> kafka_property_problems(
    const std::vector<std::pair<std::string, std::string>>& properties);

// Opens the driver for Apache Kafka, on librdkafka. The Log is thread-safe, but for destruction.
//
// An append is answered from its delivery report alone (idempotent producer, acks=all). A producer
// that has failed for good is replaced: what certainly was not stored is sent again, what may have
// been is `timed_out`. Appends are refused at once while the brokers are known to be away, or
// before the topics have been checked.
//
// One consumer at a time, a static member of the log's group: it has its share of the partitions.
// What it can't read (README.md says how records are written) goes to PREFIX.deadletters, at least
// once, and counts as finished then.
//
// `ranges` and `subscribe` wait for the first look at the brokers. Their error is `conflict`, too,
// for topics whose settings would lose or disorder records. A consumer can be had while the brokers
// are away, once the topics have been checked. `new_epoch`, for a time when nobody consumes, also
// takes over a changed number of partitions: what is not finished is appended again where its key
// belongs then, unless there is no order to keep.
//
// Threads: one that serves the producer and calls back, one that looks after the brokers' health
// and the topics, and librdkafka's own.
//
// This starts to connect and does not wait for that: what is wrong with brokers or topics is in
// `health` and in every other call's error. Errors: `invalid_argument` (settings).
[[nodiscard]] Result<std::unique_ptr<Log>> open_kafka_log(KafkaLogSettings settings);

}  // namespace conversed::queue
