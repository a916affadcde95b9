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
#include <set>
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
// The group assigns and revokes partitions inside `poll` only. Under pressure (polls for no
// records) one message is held back here. Then all partitions are paused until there is room, or
// until they are revoked.
//
// The library reads only the partitions that are not set aside. Under the protocol `range` it takes
// a changed choice of partitions only as a whole: it then reads each from `Partition::next` again
// and drops what it has fetched. So no record of the partitions that it reads on is lost or comes
// twice. Kept by: KafkaSetAside.OtherPartitionsLoseRepeatAndReorderNothing.
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
  [[nodiscard]] Result<void> set_aside(std::span<const std::int32_t> partitions) override;
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
  [[nodiscard]] KafkaAsker asker(rd_kafka_t* client);
  [[nodiscard]] Result<void> begin_assignment();
  void begin_returning();
  [[nodiscard]] Result<void> return_partitions();
  // Asks for their ranges, tells the listener and begins them.
  [[nodiscard]] Result<void> begin(const std::vector<std::int32_t>& numbers,
                                   const KafkaAsker& brokers);
  [[nodiscard]] Result<void> check_ends(const KafkaRanges& read);
  // The assigned partitions that are neither set aside nor read.
  [[nodiscard]] std::vector<std::int32_t> unread() const;
  [[nodiscard]] Result<void> restart_library();
  void give_up();
  void serve_group();
  // Joins the group, begins assigned and returning partitions and stores a waiting dead letter,
  // each if needed.
  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<void> poll_none();
  void pause_all(bool paused);
  // Waits for one message until `until`. None: none has come, or `wake` was called.
  [[nodiscard]] Result<std::optional<LogRecord>> next(SteadyTime until);
  [[nodiscard]] Result<std::optional<LogRecord>> take(KafkaMessage message);
  [[nodiscard]] Result<void> bury(const rd_kafka_message_t& message, const std::string& reason);
  static void pass(Partition& partition, std::int64_t next);
  void pass_to_end(const rd_kafka_message_t& end);
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
  // Asks about partitions that return. Null before the first return. A broker answers a client's
  // questions behind its fetches, which wait for records.
  KafkaClient observer_;
  KafkaQueue queue_;  // of the client, for `wake`; under the mutex
  KafkaQueue prune_answers_;
  std::set<std::int32_t> assigned_;  // by the group
  bool assignment_is_new_ = false;   // until the listener accepts it
  std::set<std::int32_t> set_aside_;
  std::map<std::int32_t, Partition> partitions_;  // that are read
  bool is_returning_ = false;                     // partitions have left `set_aside_`
  SteadyTime return_at_{};                        // the next try to begin them
  bool library_is_behind_ = false;                // it reads other partitions than `partitions_`
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
