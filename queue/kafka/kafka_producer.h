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

// Sends records and reports the outcome of each. Thread-safe.
//
// Records of one partition keep the order of their sends. librdkafka's producer can fail
// permanently (a sequence of its records is broken). Then a new one replaces it: records that were
// certainly not stored are sent again in the same order, records that may have been stored are
// `timed_out`.
class KafkaProducer final : public KafkaHandler {
 public:
  // `settings` must outlive it. `trouble` is called when the brokers can't be reached or do not
  // answer, on the producer's thread or the sender's. Errors: `invalid_argument`.
  using Trouble = std::function<void(const Error&)>;
  [[nodiscard]] static Result<std::unique_ptr<KafkaProducer>> open(const KafkaLogSettings& settings,
                                                                   Trouble trouble);
  ~KafkaProducer() override { stop(); }
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;

  // Whether a record is refused if too many records wait. The log's own records (epochs, dead
  // letters) are never refused: each caller has at most one.
  enum class Bound : std::uint8_t { settings, none };
  // Calls `done` exactly once, on the producer's thread or, for an immediate refusal, inside this
  // call. Errors: as Log::append.
  void send(KafkaOutgoing record, KafkaPlaced done, Bound bound = Bound::settings);
  // Sends a record of the log's own. The caller can wait for the outcome, but not on the producer's
  // thread.
  [[nodiscard]] std::future<Result<KafkaPlace>> send_own(KafkaOutgoing record);

  // Refuses new records, waits up to `stop_timeout` for records in hand, calls back for all of them
  // and ends the thread. May be called again.
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
  KafkaClient client_;  // the thread replaces it, under the lock and with `replacing_` set

  std::mutex mutex_;
  bool replacing_ = false;
  bool stopped_ = false;
  std::deque<Owned> parked_;  // records that wait for the new client
  std::uint64_t sent_ = 0;
  std::size_t waiting_records_ = 0;
  std::size_t waiting_bytes_ = 0;

  std::vector<Owned> again_;  // the thread's own: records that a failed client did not store
  std::atomic<bool> stopping_{false};
  std::once_flag stop_once_;
  std::jthread thread_;
};

}  // namespace conversed::queue
