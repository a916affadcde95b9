#pragma once

#include <librdkafka/rdkafka.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "queue/kafka/kafka_log.h"

// Owners of librdkafka's objects, its callbacks as a class, its errors as model::Error. For
// kafka_*.
namespace conversed::queue {

template <auto destroy>
struct KafkaDeleter {
  template <typename T>
  void operator()(T* object) const {
    destroy(object);
  }
};
template <typename T, auto destroy>
using KafkaOwned = std::unique_ptr<T, KafkaDeleter<destroy>>;

// Destroys a consumer without leaving its group. A static member keeps its partitions until it
// comes back or its session times out.
inline void destroy_kafka_client(rd_kafka_t* client) {
  rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

using KafkaClient = KafkaOwned<rd_kafka_t, destroy_kafka_client>;
using KafkaConf = KafkaOwned<rd_kafka_conf_t, rd_kafka_conf_destroy>;
using KafkaTopic = KafkaOwned<rd_kafka_topic_t, rd_kafka_topic_destroy>;
using KafkaPartitions =
    KafkaOwned<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>;
using KafkaHeaders = KafkaOwned<rd_kafka_headers_t, rd_kafka_headers_destroy>;
using KafkaMessage = KafkaOwned<rd_kafka_message_t, rd_kafka_message_destroy>;
using KafkaQueue = KafkaOwned<rd_kafka_queue_t, rd_kafka_queue_destroy>;
using KafkaEvent = KafkaOwned<rd_kafka_event_t, rd_kafka_event_destroy>;
using KafkaMetadata = KafkaOwned<const rd_kafka_metadata_t, rd_kafka_metadata_destroy>;
using KafkaNewTopic = KafkaOwned<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy>;
using KafkaConfigResource = KafkaOwned<rd_kafka_ConfigResource_t, rd_kafka_ConfigResource_destroy>;
using KafkaDeleteRecords = KafkaOwned<rd_kafka_DeleteRecords_t, rd_kafka_DeleteRecords_destroy>;

using KafkaReport = std::function<void(const std::string& what)>;

// The callbacks of a client. Called on the thread that polls, except `report`. None may throw. The
// client keeps a pointer to it, so it must outlive the client.
class KafkaHandler {
 public:
  // `report` must outlive this.
  explicit KafkaHandler(const KafkaReport& report) : report_(report) {}
  virtual ~KafkaHandler() = default;
  virtual void on_error(rd_kafka_resp_err_t /*error*/) {}
  virtual void on_delivery(const rd_kafka_message_t& /*message*/) {}
  virtual void on_rebalance(rd_kafka_resp_err_t /*what*/,
                            rd_kafka_topic_partition_list_t& /*partitions*/) {}
  // Reports a fact to operators. For any thread, including the library's. `what` contains no
  // secret.
  void report(const std::string& what) const { report_(what); }

 private:
  const KafkaReport& report_;
};

// An error of the broker or the library: `too_large`, `too_many`, `bad_upstream` if the broker
// refuses, else `unavailable`. `doing` names the failed action.
[[nodiscard]] Error kafka_error(rd_kafka_resp_err_t error, std::string_view doing);
// The same, or success.
[[nodiscard]] Result<void> kafka_result(rd_kafka_resp_err_t error, std::string_view doing);

// Partitions of a topic with their offsets.
using KafkaOffsets = std::map<std::int32_t, std::int64_t>;
[[nodiscard]] KafkaPartitions kafka_partitions(const std::string& topic,
                                               const KafkaOffsets& offsets);

// The names of a log's topics and group.
struct KafkaNames {
  explicit KafkaNames(const KafkaLogSettings& settings)
      : records(settings.topic_prefix + ".events"),
        group(settings.topic_prefix),
        dead_letters(settings.topic_prefix + ".deadletters"),
        epochs(settings.topic_prefix + ".epochs") {}

  const std::string records;  // the topic of the log's events
  const std::string group;
  const std::string dead_letters;
  const std::string epochs;
  const std::string epochs_key = "epochs";  // of the record in `epochs`
};

inline constexpr std::size_t max_kafka_record_bytes = std::size_t{16} << 20;

enum class KafkaRole : std::uint8_t {
  producer,
  mover,     // the producer of a move's transaction (kafka_move.h)
  consumer,  // a member of the group
  observer,  // asks for offsets, topics and epochs, without joining the group
};

// Makes a client with the properties of its role, of the daemon's promises, and of the operator.
// `handler` must outlive it. Errors: `invalid_argument` names the property, never its value.
[[nodiscard]] Result<KafkaClient> make_kafka_client(const KafkaLogSettings& settings,
                                                    KafkaRole role, KafkaHandler& handler);

}  // namespace conversed::queue
