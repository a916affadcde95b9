#pragma once

#include <string>
#include <utility>
#include <vector>

#include "queue/kafka/kafka_client.h"
#include "queue/log.h"

namespace conversed::queue {

using KafkaHeaderList = std::vector<std::pair<std::string, std::string>>;

// How records are written to Kafka, version 1; README.md describes it for other programs.
//   key      Record::key
//   value    Record::value
//   headers  v=1, id, type, trace
[[nodiscard]] KafkaHeaderList kafka_headers_of(const Record& record);

// A message as a Record. `invalid_argument` says what makes it unreadable, for people.
[[nodiscard]] Result<Record> read_kafka_record(const rd_kafka_message_t& message);

// All headers of a message, as they are.
[[nodiscard]] KafkaHeaderList kafka_headers_of(const rd_kafka_message_t& message);

}  // namespace conversed::queue
