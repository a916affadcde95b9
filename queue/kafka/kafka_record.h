#pragma once

#include <string>
#include <utility>
#include <vector>

#include "queue/kafka/kafka_client.h"
#include "queue/log.h"

namespace conversed::queue {

using KafkaHeaderList = std::vector<std::pair<std::string, std::string>>;

// The format of records in Kafka, version 1. README.md describes it for other programs.
//   key      the routing part of Record::key, so that Kafka's clients choose the right partition
//   value    Record::value
//   headers  v=1, id, type, trace, and session: what follows in Record::key behind the separator
[[nodiscard]] KafkaHeaderList kafka_headers_of(const Record& record);

// A message as a Record. The message of `invalid_argument` says, for people, why it is unreadable.
[[nodiscard]] Result<Record> read_kafka_record(const rd_kafka_message_t& message);

// All headers of a message, unchanged.
[[nodiscard]] KafkaHeaderList kafka_headers_of(const rd_kafka_message_t& message);

}  // namespace conversed::queue
