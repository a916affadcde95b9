#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "queue/kafka/kafka_client.h"
#include "queue/kafka/kafka_epochs.h"
#include "queue/kafka/kafka_producer.h"
#include "queue/kafka/kafka_topics.h"

namespace conversed::queue {

// The parts that a consumer uses. All must outlive it.
struct KafkaConsumerContext {
  const KafkaLogSettings& settings;
  const KafkaNames& names;
  KafkaProducer& producer;  // for dead letters
  std::shared_ptr<const KafkaEpochs> epochs;
  std::function<void()> closed;  // called at the end of the consumer
};

// The log's member of the group. Threads: as Consumer.
//
// Messages are taken one by one, since batches of librdkafka skip offsets around pause and resume.
// Partitions are assigned and revoked inside `poll` only. Under pressure (polls for no records) one
// message is held back here. Then all partitions are paused until there is room, or until they are
// revoked.
class KafkaConsumer final : public Consumer, public KafkaHandler {
 public:
  // Errors: `invalid_argument`, `unavailable`.
  [[nodiscard]] static Result<std::unique_ptr<KafkaConsumer>> open(KafkaConsumerContext context,
                                                                   Listener& listener);
  ~KafkaConsumer() override;
  KafkaConsumer(const KafkaConsumer&) = delete;
  KafkaConsumer& operator=(const KafkaConsumer&) = delete;

  [[nodiscard]] Result<std::vector<LogRecord>> poll(std::size_t max,
                                                    std::chrono::milliseconds wait) override;
  [[nodiscard]] Result<void> commit(std::span<const Position> finished) override;
  void wake() override;

 private:
  struct Partition {
    std::int64_t committed = 0;
    std::int64_t next = 0;    // behind all offsets that were handed out or passed
    std::int64_t pruned = 0;  // records below this offset were asked to be deleted
    // Passed offsets (dead letters, ends of transactions) behind a record that was handed out: the
    // record's offset → the end of the passed ones. They are committed with the record.
    std::map<std::int64_t, std::int64_t> finished_behind;
    std::int64_t last_handed_out = -1;
  };
  using SteadyTime = std::chrono::steady_clock::time_point;

  KafkaConsumer(KafkaConsumerContext context, Listener& listener);
  void on_rebalance(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t& list) override;

  [[nodiscard]] Result<void> join();
  void leave();
  [[nodiscard]] KafkaAsker asker();
  [[nodiscard]] Result<void> begin_assignment();
  [[nodiscard]] Result<void> check_ends(const KafkaRanges& read);
  void give_up();
  void serve_group();
  // Joins the group, begins newly assigned partitions and stores a waiting dead letter, each if
  // needed.
  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<void> poll_none();
  void pause_all(bool paused);
  // Waits for one message until `until`. None: none has come, or `wake` was called.
  [[nodiscard]] Result<std::optional<LogRecord>> next(SteadyTime until);
  [[nodiscard]] Result<std::optional<LogRecord>> take(KafkaMessage message);
  [[nodiscard]] Result<void> bury(const rd_kafka_message_t& message, const std::string& reason);
  static void pass(Partition& partition, std::int64_t next);
  void commit_passed();
  [[nodiscard]] Result<LogRecord> read(const rd_kafka_message_t& message) const;
  [[nodiscard]] Result<void> commit_offsets(const KafkaOffsets& offsets);
  // Asks the brokers to delete finished records from time to time. Reads the answers with the next
  // request.
  void prune();
  void report_prune_answers();

  const KafkaConsumerContext context_;
  Listener& listener_;
  KafkaClient client_;
  KafkaQueue queue_;  // of the client, for `wake`; under the mutex
  KafkaQueue prune_answers_;
  KafkaPartitions assigned_by_group_;  // set until the listener is told
  std::map<std::int32_t, Partition> partitions_;
  KafkaMessage unburied_;            // an unreadable message whose dead letter is not stored yet
  std::deque<LogRecord> held_back_;  // taken from the client, not handed out yet
  std::optional<Error> broken_;
  bool fenced_ = false;  // the client is useless: a new client has to join
  bool all_paused_ = false;
  std::uint64_t assignment_ = 0;  // the number of ended assignments
  std::optional<SteadyTime> ends_below_since_;
  SteadyTime commit_passed_at_{};  // the next try after a failed commit
  SteadyTime served_at_{};
  SteadyTime pruned_at_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> woken_{false};
};

}  // namespace conversed::queue
