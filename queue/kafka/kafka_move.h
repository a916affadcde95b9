#pragma once

#include <cstdint>
#include <vector>

#include "queue/kafka/kafka_client.h"
#include "queue/kafka/kafka_epochs.h"
#include "queue/kafka/kafka_topics.h"

namespace conversed::queue {

// A topic that has got another number of partitions, so that keys belong elsewhere.
struct KafkaMove {
  const KafkaLogSettings& settings;
  const KafkaNames& names;
  const KafkaEpochs& epochs;    // of the records that are there
  std::int32_t partitions = 0;  // that the topic has now
  std::int64_t epoch = 0;       // to be opened
};

// Where the epoch begins, by partition.
struct KafkaMoved {
  std::int64_t epoch = 0;
  std::vector<std::int64_t> first;
};

// Appends every unfinished record once more, in order, to the partition where its key belongs now,
// and commits the positions in front of the copies. All of it is one transaction: a crash leaves
// nothing of it or all. If an earlier call has committed, and its epoch is not stored yet, this
// returns the result of that call. Nobody may consume or append meanwhile. Errors: `unavailable`,
// `bad_upstream`, and those of `settings.is_finished`.
[[nodiscard]] Result<KafkaMoved> move_kafka_records(const KafkaMove& move, const KafkaAsker& asker);

}  // namespace conversed::queue
