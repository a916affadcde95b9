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

// What the driver asks the brokers. One call at a time; each waits at most for the time given, for
// every question it asks. Errors beside those named: `unavailable`, `bad_upstream` (the brokers
// refuse).

// Who asks. What is not there yet is looked at again, until `wait` is over or `pause`, which waits
// between two looks, says to give up.
struct KafkaAsker {
  rd_kafka_t* client = nullptr;
  std::chrono::milliseconds wait{};
  std::function<bool()> pause;  // false: give up
};
inline constexpr std::chrono::milliseconds kafka_look_interval{50};

struct KafkaTopicState {
  std::int32_t partitions = 0;  // 0: there is no such topic
  std::int32_t replicas = 0;    // of the partition that has the fewest
  bool has_leaders = false;     // every partition can be written to and read
};
[[nodiscard]] Result<KafkaTopicState> kafka_topic_state(rd_kafka_t* client,
                                                        const std::string& topic,
                                                        std::chrono::milliseconds wait);

// Makes the topics that are missing and checks those that are there: `conflict` for one that would
// lose records or put them out of order. What may not be looked at, or is only worth a warning, is
// reported. Returns the number of partitions of the log.
[[nodiscard]] Result<std::int32_t> prepare_kafka_topics(const KafkaAsker& asker,
                                                        const KafkaNames& names,
                                                        const KafkaLogSettings& settings);

// The log's newest record of epochs, if there is one. `internal` when it can't be read.
[[nodiscard]] Result<std::optional<KafkaEpochs>> read_kafka_epochs(const KafkaAsker& asker,
                                                                   const KafkaNames& names);

// What these partitions of the log hold, by number; `committed` as the group has it, `end` at
// most.
struct KafkaRanges {
  std::vector<PartitionRange> ranges;
  // Says which partition ends below what the group has committed: its leader has just taken over
  // and can't tell yet all that is there, or records are lost. Empty: none does.
  std::string ends_below;
  // Says which partition begins above what the group has committed: records that nobody has
  // finished are gone. Empty: none does, or an epoch was opened since.
  std::string lost;
  std::int64_t newest_committed = 0;  // the newest epoch in which a position was committed
};
[[nodiscard]] Result<KafkaRanges> read_kafka_ranges(const KafkaAsker& asker,
                                                    const std::string& topic,
                                                    const std::vector<std::int32_t>& partitions,
                                                    const KafkaEpochs& epochs);

// `conflict`, with what to do, of what `KafkaRanges::lost` says.
[[nodiscard]] Error kafka_records_lost(const std::string& lost);

// 0 to `count` - 1.
[[nodiscard]] std::vector<std::int32_t> all_partitions(std::int32_t count);

// Notes in the commit of a partition the epoch that it is made in.
void note_epoch(rd_kafka_topic_partition_t& commit, std::int64_t epoch);

}  // namespace conversed::queue
