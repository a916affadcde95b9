#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "queue/kafka/kafka_client.h"
#include "queue/kafka/kafka_epochs.h"

namespace conversed::queue {

// The driver's questions to the brokers. One call at a time. Each question of a call waits at most
// for the given time. Further errors: `unavailable`, `bad_upstream` (the brokers refuse).

// A client that asks the brokers. It asks again for missing things until `wait` has passed or
// `pause`, which waits between two questions, returns false.
struct KafkaAsker {
  rd_kafka_t* client = nullptr;
  std::chrono::milliseconds wait{};
  std::function<bool()> pause;  // false: give up
};
inline constexpr std::chrono::milliseconds kafka_look_interval{50};

struct KafkaTopicState {
  std::int32_t partitions = 0;  // 0: there is no such topic
  std::int32_t replicas = 0;    // of the partition with the fewest
  bool has_leaders = false;     // every partition has a leader
};
[[nodiscard]] Result<KafkaTopicState> kafka_topic_state(rd_kafka_t* client,
                                                        const std::string& topic,
                                                        std::chrono::milliseconds wait);

// Makes missing topics and checks existing ones: `conflict` for a topic that would lose records or
// disorder them. Reports settings that it may not read or that deserve a warning. Returns the log's
// number of partitions.
[[nodiscard]] Result<std::int32_t> prepare_kafka_topics(const KafkaAsker& asker,
                                                        const KafkaNames& names,
                                                        const KafkaLogSettings& settings);

// The log's newest record of epochs, if there is one. `internal` if it can't be read.
[[nodiscard]] Result<std::optional<KafkaEpochs>> read_kafka_epochs(const KafkaAsker& asker,
                                                                   const KafkaNames& names);

// The ranges of these partitions, by number. `committed` is the group's offset, at most `end`.
struct KafkaRanges {
  std::vector<PartitionRange> ranges;
  // Names a partition that ends below its committed offset: its new leader can't tell the end yet,
  // or records are lost. Empty: there is none.
  std::string ends_below;
  // Names a partition that begins above its committed offset: unfinished records are gone. Empty:
  // there is none, or an epoch was opened since.
  std::string lost;
  std::int64_t newest_committed = 0;  // the newest epoch in which a position was committed
};
[[nodiscard]] Result<KafkaRanges> read_kafka_ranges(const KafkaAsker& asker,
                                                    const std::string& topic,
                                                    const std::vector<std::int32_t>& partitions,
                                                    const KafkaEpochs& epochs);

// The `conflict` for `KafkaRanges::lost`, with a way out.
[[nodiscard]] Error kafka_records_lost(const std::string& lost);

// 0 to `count` - 1.
[[nodiscard]] std::vector<std::int32_t> all_partitions(std::int32_t count);

// Notes the epoch in the commit of a partition.
void note_epoch(rd_kafka_topic_partition_t& commit, std::int64_t epoch);

}  // namespace conversed::queue
