// What the log's member of the group does with records that all are finished: it has them deleted.
#include "queue/kafka/kafka_consumer.h"

namespace conversed::queue {

// Asks for what is finished to be deleted, now and then; answers are looked at with the next one.
void KafkaConsumer::prune() {
  const auto now = std::chrono::steady_clock::now();
  std::int64_t finished = 0;
  for (const auto& [number, partition] : partitions_) {
    finished += partition.committed - partition.pruned;
  }
  if (finished == 0 || (finished < context_.settings.prune_after_records &&
                        now - pruned_at_ < context_.settings.prune_interval)) {
    return;
  }
  pruned_at_ = now;
  report_prune_answers();
  const KafkaPartitions list(
      rd_kafka_topic_partition_list_new(static_cast<int>(partitions_.size())));
  for (auto& [number, partition] : partitions_) {
    if (partition.committed == partition.pruned) continue;
    rd_kafka_topic_partition_list_add(list.get(), context_.names.records.c_str(), number)->offset =
        partition.committed;
    partition.pruned = partition.committed;
  }
  const KafkaDeleteRecords request(rd_kafka_DeleteRecords_new(list.get()));
  rd_kafka_DeleteRecords_t* requests[] = {request.get()};
  rd_kafka_DeleteRecords(client_.get(), requests, 1, nullptr, prune_answers_.get());
}

void KafkaConsumer::report_prune_answers() {
  while (const KafkaEvent event{rd_kafka_queue_poll(prune_answers_.get(), 0)}) {
    auto error = rd_kafka_event_error(event.get());
    const auto* result = rd_kafka_event_DeleteRecords_result(event.get());
    const auto* list = result == nullptr ? nullptr : rd_kafka_DeleteRecords_result_offsets(result);
    for (int at = 0; list != nullptr && error == RD_KAFKA_RESP_ERR_NO_ERROR && at < list->cnt;
         ++at) {
      error = list->elems[at].err;
    }
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      report(kafka_error(error, "Finished records can't be deleted").message);
    }
  }
}

}  // namespace conversed::queue
