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

// What a consumer works with; all of it outlives it.
struct KafkaConsumerContext {
  const KafkaLogSettings& settings;
  const KafkaNames& names;
  KafkaProducer& producer;  // for dead letters
  std::shared_ptr<const KafkaEpochs> epochs;
  std::function<void()> closed;  // called at the end of the consumer
};

// The log's member of the group. Thread contract: Consumer's.
//
// Messages are taken one by one, since batches of librdkafka skip offsets around pause and resume.
// Partitions come and go inside `poll` only. Under pressure (polls of none) one message is held
// back here, and then all partitions are paused until there is room, or they are given up.
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
    std::int64_t next = 0;    // above all that was handed out or passed
    std::int64_t pruned = 0;  // what is below has been asked to be deleted
    // What was passed (dead letters, ends of transactions) behind a record that was handed out: its
    // offset -> the end of them. They are committed with it.
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
  // Joins the group, begins what it has assigned and tries a dead letter again, each if it is due.
  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<void> poll_none();
  void pause_all(bool paused);
  // Waits for one message until `until`; none when there is none, or somebody woke it.
  [[nodiscard]] Result<std::optional<LogRecord>> next(SteadyTime until);
  [[nodiscard]] Result<std::optional<LogRecord>> take(KafkaMessage message);
  [[nodiscard]] Result<void> bury(const rd_kafka_message_t& message, const std::string& reason);
  static void pass(Partition& partition, std::int64_t next);
  void commit_passed();
  [[nodiscard]] Result<LogRecord> read(const rd_kafka_message_t& message) const;
  [[nodiscard]] Result<void> commit_offsets(const KafkaOffsets& offsets);
  // Asks for what is finished to be deleted, now and then; reads the answers with the next request.
  void prune();
  void report_prune_answers();

  const KafkaConsumerContext context_;
  Listener& listener_;
  KafkaClient client_;
  KafkaQueue queue_;  // the client's, to wake it by; under the mutex
  KafkaQueue prune_answers_;
  KafkaPartitions assigned_by_group_;  // until the listener is told
  std::map<std::int32_t, Partition> partitions_;
  KafkaMessage unburied_;            // unreadable, and its dead letter is not stored yet
  std::deque<LogRecord> held_back_;  // taken, and not handed out
  std::optional<Error> broken_;
  bool fenced_ = false;  // the client is of no use any more: a new one is to join
  bool all_paused_ = false;
  std::uint64_t assignment_ = 0;  // counts those that are over
  std::optional<SteadyTime> ends_below_since_;
  SteadyTime commit_passed_at_{};  // not before; it has failed
  SteadyTime served_at_{};
  SteadyTime pruned_at_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> woken_{false};
};

}  // namespace conversed::queue
