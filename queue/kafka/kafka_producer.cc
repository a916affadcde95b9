#include "queue/kafka/kafka_producer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "store/runtime/thread_name.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

KafkaHeaders to_headers(const KafkaHeaderList& list) {
  KafkaHeaders headers(rd_kafka_headers_new(list.size()));
  for (const auto& [name, value] : list) {
    rd_kafka_header_add(headers.get(), name.data(), static_cast<ssize_t>(name.size()), value.data(),
                        static_cast<ssize_t>(value.size()));
  }
  return headers;
}

rd_kafka_vu_t variable(rd_kafka_vtype_t type) {
  rd_kafka_vu_t value{};
  value.vtype = type;
  return value;
}

}  // namespace

Result<std::unique_ptr<KafkaProducer>> KafkaProducer::open(const KafkaLogSettings& settings,
                                                           Trouble trouble) {
  std::unique_ptr<KafkaProducer> producer(new KafkaProducer(settings, std::move(trouble)));
  auto client = make_kafka_client(settings, KafkaRole::producer, *producer);
  if (!client) return model::fail(client.error());
  producer->client_ = std::move(*client);
  producer->thread_ = std::jthread([raw = producer.get()] { raw->run(); });
  return producer;
}

KafkaProducer::KafkaProducer(const KafkaLogSettings& settings, Trouble trouble)
    : KafkaHandler(settings.report), settings_(settings), trouble_(std::move(trouble)) {}

// Records are sent in the order in which senders get the lock.
void KafkaProducer::send(KafkaOutgoing record, KafkaPlaced done, Bound bound) {
  std::size_t bytes = record.key.size() + record.value.size();
  for (const auto& [name, value] : record.headers) bytes += name.size() + value.size();
  auto waiting = std::make_unique<Waiting>(Waiting{std::move(record), std::move(done), 0, bytes});
  const auto accepted = [&]() -> Result<void> {
    const std::lock_guard lock(mutex_);
    if (stopped_) return model::fail(Errc::unavailable, "The log is stopped.");
    const bool full = waiting_records_ >= settings_.max_waiting_records ||
                      waiting_bytes_ + bytes > settings_.max_waiting_bytes;
    if (full && bound == Bound::settings) {
      return model::fail(Errc::too_many, "Too many records wait for Kafka already.");
    }
    waiting->number = ++sent_;
    if (replacing_) {
      parked_.push_back(std::move(waiting));
    } else if (const auto error = produce(waiting); error == RD_KAFKA_RESP_ERR__FATAL) {
      replacing_ = true;  // the thread meets the same error and replaces the client
      parked_.push_back(std::move(waiting));
    } else if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return model::fail(kafka_error(error, "Kafka does not take the record"));
    }
    ++waiting_records_;
    waiting_bytes_ += bytes;
    return {};
  }();
  if (!accepted) waiting->done(model::fail(accepted.error()));
}

std::future<Result<KafkaPlace>> KafkaProducer::send_own(KafkaOutgoing record) {
  auto done = std::make_shared<std::promise<Result<KafkaPlace>>>();
  auto outcome = done->get_future();
  send(
      std::move(record), [done](Result<KafkaPlace> placed) { done->set_value(std::move(placed)); },
      Bound::none);
  return outcome;
}

// Gives `waiting` to the client, unless there is an error. Key and value must not move until the
// delivery report returns the ownership.
rd_kafka_resp_err_t KafkaProducer::produce(Owned& waiting) {
  KafkaOutgoing& record = waiting->record;
  KafkaHeaders headers = to_headers(record.headers);
  std::array values{variable(RD_KAFKA_VTYPE_TOPIC),  variable(RD_KAFKA_VTYPE_PARTITION),
                    variable(RD_KAFKA_VTYPE_KEY),    variable(RD_KAFKA_VTYPE_VALUE),
                    variable(RD_KAFKA_VTYPE_OPAQUE), variable(RD_KAFKA_VTYPE_HEADERS)};
  values[0].u.cstr = record.topic;
  values[1].u.i32 = record.partition;
  values[2].u.mem = {record.key.data(), record.key.size()};
  values[3].u.mem = {record.value.data(), record.value.size()};
  values[4].u.ptr = waiting.get();
  values[5].u.headers = headers.get();
  const KafkaOwned<rd_kafka_error_t, rd_kafka_error_destroy> error(
      rd_kafka_produceva(client_.get(), values.data(), values.size()));
  if (error) {
    return rd_kafka_error_is_fatal(error.get()) != 0 ? RD_KAFKA_RESP_ERR__FATAL
                                                     : rd_kafka_error_code(error.get());
  }
  (void)headers.release();  // both are the client's now
  (void)waiting.release();
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

void KafkaProducer::run() {
  model::name_this_thread("producer");
  while (!stopping_) {
    rd_kafka_poll(client_.get(), 100);
    if (has_failed()) replace();
  }
  finish();
}

bool KafkaProducer::has_failed() const {
  return rd_kafka_fatal_error(client_.get(), nullptr, 0) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

// Waits until every record in the client has its report. Then makes the client report the remaining
// records, with whether they may have been stored.
void KafkaProducer::empty(std::chrono::milliseconds wait) {
  if (rd_kafka_flush(client_.get(), static_cast<int>(wait.count())) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    return;
  }
  rd_kafka_purge(client_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_flush(client_.get(), -1);
}

void KafkaProducer::replace() {
  std::array<char, 512> reason{};
  rd_kafka_fatal_error(client_.get(), reason.data(), reason.size());
  report("The producer has failed and is replaced: " + std::string(reason.data()));
  {
    const std::lock_guard lock(mutex_);
    replacing_ = true;
  }
  empty(0ms);
  auto client = make_kafka_client(settings_, KafkaRole::producer, *this);
  KafkaClient old;
  std::vector<std::pair<Owned, Error>> refused;
  {
    const std::lock_guard lock(mutex_);
    if (client) old = std::exchange(client_, std::move(*client));
    std::ranges::sort(again_, {}, [](const Owned& waiting) { return waiting->number; });
    std::ranges::move(parked_, std::back_inserter(again_));
    parked_.clear();
    for (auto& waiting : again_) {
      const auto error = client ? produce(waiting) : RD_KAFKA_RESP_ERR__FATAL;
      if (waiting) {
        refused.emplace_back(std::move(waiting), kafka_error(error, "The record can't be sent"));
      }
    }
    again_.clear();
    replacing_ = false;
  }
  for (auto& [waiting, error] : refused) answer(std::move(waiting), model::fail(error));
}

void KafkaProducer::finish() {
  empty(settings_.stop_timeout);
  std::vector<Owned> left;
  {
    const std::lock_guard lock(mutex_);
    std::ranges::move(parked_, std::back_inserter(left));
    parked_.clear();
  }
  for (auto& waiting : left) {
    answer(std::move(waiting), model::fail(Errc::unavailable, "The log is stopped."));
  }
}

void KafkaProducer::on_delivery(const rd_kafka_message_t& message) {
  Owned waiting(static_cast<Waiting*>(message._private));
  if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    return answer(std::move(waiting), KafkaPlace{message.partition, message.offset});
  }
  const bool stored_nowhere =
      rd_kafka_message_status(&message) == RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
  if (stored_nowhere && !stopping_ && has_failed()) {
    again_.push_back(std::move(waiting));
    return;
  }
  Error error = kafka_error(message.err, "The record was not stored");
  if (!stored_nowhere) {
    error = {Errc::timed_out, std::string("It is not known whether the record was stored: ") +
                                  rd_kafka_err2str(message.err) + "."};
  }
  const bool of_the_brokers = error.code == Errc::unavailable || error.code == Errc::timed_out;
  if (of_the_brokers && !stopping_) trouble_(error);
  answer(std::move(waiting), model::fail(std::move(error)));
}

void KafkaProducer::answer(Owned waiting, Result<KafkaPlace> outcome) {
  {
    const std::lock_guard lock(mutex_);
    --waiting_records_;
    waiting_bytes_ -= waiting->bytes;
  }
  waiting->done(std::move(outcome));
}

void KafkaProducer::on_error(rd_kafka_resp_err_t error) {
  if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || error == RD_KAFKA_RESP_ERR__AUTHENTICATION) {
    trouble_(kafka_error(error, "Kafka can't be reached"));
  }
}

void KafkaProducer::stop() {
  std::call_once(stop_once_, [this] {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  });
}

}  // namespace conversed::queue
