#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "queue/kafka_handles.h"
#include "queue/kafka_log.h"

namespace conversed::queue {

// The names of what a log has in Kafka.
struct KafkaNames {
  explicit KafkaNames(const std::string& prefix)
      : group(prefix),
        events(prefix + ".events"),
        dead_letters(prefix + ".deadletters"),
        epochs(prefix + ".epochs") {}

  const std::string group;
  const std::string events;
  const std::string dead_letters;
  const std::string epochs;
};

inline constexpr std::size_t max_kafka_record_bytes = std::size_t{16} << 20;

enum class KafkaRole : std::uint8_t {
  producer,
  consumer,  // a member of the group
  observer,  // asks for offsets, topics and epochs; joins no group
};

// A client with the properties that the role and the promises ask for, and the operator's.
// `handler` must outlive it. Errors: `invalid_argument` names the property, never its value.
[[nodiscard]] Result<KafkaClient> make_kafka_client(const KafkaLogSettings& settings,
                                                    KafkaRole role, KafkaHandler& handler);

// What librdkafka logs of itself, as a line to report; empty when it isn't worth one.
[[nodiscard]] std::string kafka_log_line(int level, const char* facility, const char* message);

}  // namespace conversed::queue
