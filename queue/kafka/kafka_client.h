#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "queue/kafka/kafka_handles.h"
#include "queue/kafka/kafka_log.h"

namespace conversed::queue {

// The names of a log's topics and group. The group of events is the prefix itself.
struct KafkaNames {
  explicit KafkaNames(const KafkaLogSettings& settings)
      : records(settings.topic_prefix + "." + settings.stream),
        group(settings.stream == "events" ? settings.topic_prefix : records),
        dead_letters(settings.topic_prefix + ".deadletters"),
        epochs(settings.topic_prefix + ".epochs"),
        epochs_key(settings.stream == "events" ? "epochs" : "epochs." + settings.stream) {}

  const std::string records;  // the topic that the log is
  const std::string group;
  const std::string dead_letters;
  const std::string epochs;      // a topic
  const std::string epochs_key;  // of the record in it
};

inline constexpr std::size_t max_kafka_record_bytes = std::size_t{16} << 20;

enum class KafkaRole : std::uint8_t {
  producer,
  mover,     // a producer of one transaction (kafka_move.h)
  consumer,  // a member of the group
  observer,  // asks for offsets, topics and epochs; joins no group
};

// A client with the properties that the role and the promises ask for, and the operator's.
// `handler` must outlive it. Errors: `invalid_argument` names the property, never its value.
[[nodiscard]] Result<KafkaClient> make_kafka_client(const KafkaLogSettings& settings,
                                                    KafkaRole role, KafkaHandler& handler);

}  // namespace conversed::queue
