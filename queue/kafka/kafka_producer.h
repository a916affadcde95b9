#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "queue/kafka/kafka_client.h"
#include "queue/kafka/kafka_record.h"

namespace conversed::queue {

struct KafkaOutgoing {
  const char* topic = "";  // outlives the producer
  std::int32_t partition = 0;
  std::string key;
  std::string value;
  KafkaHeaderList headers;
};

struct KafkaPlace {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};
using KafkaPlaced = std::function<void(Result<KafkaPlace>)>;

// Sends records and tells what became of each. Thread-safe.
//
// Records of one partition keep the order of their sends. Librdkafka's producer can fail for good
// (a sequence of its records is broken); then it is replaced: what was certainly not stored is sent
// again by the new one in the same order, what may have been stored is `timed_out`.
class KafkaProducer final : public KafkaHandler {
 public:
  // `settings` must outlive it. `trouble` is told when the brokers can't be reached or don't
  // answer, on the producer's thread or the sender's. Errors: `invalid_argument`.
  using Trouble = std::function<void(const Error&)>;
  [[nodiscard]] static Result<std::unique_ptr<KafkaProducer>> open(const KafkaLogSettings& settings,
                                                                   Trouble trouble);
  ~KafkaProducer() override { stop(); }
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;

  // Whether a record is refused when too much waits already. The log's own records (epochs, dead
  // letters) are never refused: each caller has one at most.
  enum class Bound : std::uint8_t { settings, none };
  // Calls `done` exactly once, on the producer's thread or, for an immediate refusal, inside this
  // call. Errors: as Log::append.
  void send(KafkaOutgoing record, KafkaPlaced done, Bound bound = Bound::settings);
  // A record of the log's own, with an outcome to wait for; not on the producer's thread.
  [[nodiscard]] std::future<Result<KafkaPlace>> send_own(KafkaOutgoing record);

  // Refuses what comes, waits for what is in hand for the settings' `stop_timeout`, calls back for
  // all of it and ends the thread. May be called again.
  void stop();

 private:
  struct Waiting {
    KafkaOutgoing record;
    KafkaPlaced done;
    std::uint64_t number;  // in the order of sends
    std::size_t bytes;
  };
  using Owned = std::unique_ptr<Waiting>;

  KafkaProducer(const KafkaLogSettings& settings, Trouble trouble);
  void on_error(rd_kafka_resp_err_t error) override;
  void on_delivery(const rd_kafka_message_t& message) override;

  void run();
  [[nodiscard]] bool has_failed() const;
  void empty(std::chrono::milliseconds wait);
  void replace();
  void finish();
  [[nodiscard]] rd_kafka_resp_err_t produce(Owned& waiting);
  void answer(Owned waiting, Result<KafkaPlace> outcome);

  const KafkaLogSettings& settings_;
  const Trouble trouble_;
  KafkaClient client_;  // replaced by the thread, under the lock and with `replacing_` set

  std::mutex mutex_;
  bool replacing_ = false;
  bool stopped_ = false;
  std::deque<Owned> parked_;  // while it is replaced
  std::uint64_t sent_ = 0;
  std::size_t waiting_records_ = 0;
  std::size_t waiting_bytes_ = 0;

  std::vector<Owned> again_;  // the thread's own: what a failed client certainly did not store
  std::atomic<bool> stopping_{false};
  std::once_flag stop_once_;
  std::jthread thread_;
};

}  // namespace conversed::queue
