#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "queue/kafka_client.h"
#include "queue/kafka_epochs.h"

namespace conversed::queue {

// What the driver asks the brokers, through a client that is no member of the group. One call at a
// time; each waits at most for the time given, for every question it asks. Errors beside those
// named: `unavailable`, `bad_upstream` (the brokers refuse).

struct KafkaTopicState {
  std::int32_t partitions = 0;  // 0: there is no such topic
  std::int32_t replicas = 0;    // of the partition that has the fewest
  bool has_leaders = false;     // every partition can be written to and read
};
[[nodiscard]] Result<KafkaTopicState> kafka_topic_state(rd_kafka_t* client,
                                                        const std::string& topic,
                                                        std::chrono::milliseconds wait);

// Makes the topics that are missing and checks those that are there: `conflict` for one that would
// lose records or put them out of order. What can't be checked, or is only worth a warning, is
// reported. Returns the number of partitions of the events.
[[nodiscard]] Result<std::int32_t> prepare_kafka_topics(
    rd_kafka_t* client, const KafkaNames& names, std::int32_t partitions,
    std::chrono::milliseconds wait, const std::function<void(const std::string&)>& report);

// The newest record of epochs, if there is one. `internal` when it can't be read.
[[nodiscard]] Result<std::optional<KafkaEpochs>> read_kafka_epochs(rd_kafka_t* client,
                                                                   const std::string& topic,
                                                                   std::chrono::milliseconds wait);

// What these partitions of the events hold, by number; `committed` as the group has it.
[[nodiscard]] Result<std::vector<PartitionRange>> read_kafka_ranges(
    rd_kafka_t* client, const std::string& topic, const std::vector<std::int32_t>& partitions,
    const KafkaEpochs& epochs, std::chrono::milliseconds wait);

// Commits carry the epoch they were made in.
[[nodiscard]] std::string kafka_commit_note(std::int64_t epoch);

}  // namespace conversed::queue
