#pragma once

#include <cstdint>
#include <vector>

#include "queue/kafka/kafka_client.h"
#include "queue/kafka/kafka_epochs.h"
#include "queue/kafka/kafka_topics.h"

namespace conversed::queue {

// A topic with a changed number of partitions, so that keys belong to other partitions.
struct KafkaMove {
  const KafkaLogSettings& settings;
  const KafkaNames& names;
  const KafkaEpochs& epochs;    // of the present records
  std::int32_t partitions = 0;  // the topic's new number
  std::int64_t epoch = 0;       // the epoch to open
};

// Where the epoch begins, by partition.
struct KafkaMoved {
  std::int64_t epoch = 0;
  std::vector<std::int64_t> first;
};

// Appends every unfinished record once more, in order, to the partition of its key, and commits the
// positions in front of the copies. The move is one transaction: a crash leaves all of it or none.
// If an earlier call has committed, and its epoch is not stored yet, returns the result of that
// call. No consumer or producer may run meanwhile. Errors: `unavailable`, `bad_upstream`, and those
// of `settings.is_finished`.
[[nodiscard]] Result<KafkaMoved> move_kafka_records(const KafkaMove& move, const KafkaAsker& asker);

}  // namespace conversed::queue
