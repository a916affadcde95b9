#include "tests/bench/produce.h"

#include <librdkafka/rdkafka.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

namespace conversed::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Text = std::array<char, 512>;

[[noreturn]] void give_up(const char* what, const char* why) {
  std::cerr << what << ": " << why << '\n';
  std::exit(1);
}

struct Outcomes {
  LoadResult result;
  std::size_t open = 0;
};

void on_delivery(rd_kafka_t* /*producer*/, const rd_kafka_message_t* message, void* opaque) {
  auto& outcomes = *static_cast<Outcomes*>(opaque);
  --outcomes.open;
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    ++outcomes.result.refused;
    return;
  }
  ++outcomes.result.answered;
  const std::chrono::nanoseconds sent(reinterpret_cast<std::intptr_t>(message->_private));
  outcomes.result.latency.add(Clock::now().time_since_epoch() - sent);
}

using Producer = std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)>;

Producer make_producer(const std::string& brokers, Outcomes& outcomes) {
  Text why{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] :
       {std::pair{"bootstrap.servers", brokers.c_str()}, std::pair{"enable.idempotence", "true"},
        std::pair{"acks", "all"}, std::pair{"linger.ms", "0"},
        std::pair{"socket.nagle.disable", "true"}}) {
    if (rd_kafka_conf_set(conf, name, value, why.data(), why.size()) != RD_KAFKA_CONF_OK) {
      give_up(name, why.data());
    }
  }
  rd_kafka_conf_set_opaque(conf, &outcomes);
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  rd_kafka_t* made = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why.data(), why.size());
  if (made == nullptr) give_up("producer", why.data());
  return {made, rd_kafka_destroy};
}

// A topic that exists already is no error.
void make_topic(rd_kafka_t* producer, const std::string& name, std::size_t partitions) {
  constexpr int wait_ms = 30'000;
  Text why{};
  rd_kafka_NewTopic_t* topic =
      rd_kafka_NewTopic_new(name.c_str(), static_cast<int>(partitions), -1, why.data(), why.size());
  if (topic == nullptr) give_up("topic", why.data());
  rd_kafka_queue_t* answers = rd_kafka_queue_new(producer);
  rd_kafka_CreateTopics(producer, &topic, 1, nullptr, answers);
  rd_kafka_event_t* answer = rd_kafka_queue_poll(answers, wait_ms);
  if (answer == nullptr) give_up("topic", "the broker does not answer");
  if (rd_kafka_event_error(answer) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    give_up("topic", rd_kafka_event_error_string(answer));
  }
  rd_kafka_event_destroy(answer);
  rd_kafka_queue_destroy(answers);
  rd_kafka_NewTopic_destroy(topic);
}

}  // namespace

LoadResult run_producer(const ProduceSettings& settings) {
  constexpr int flush_ms = 60'000;
  Outcomes outcomes;
  const Producer producer = make_producer(settings.brokers, outcomes);
  make_topic(producer.get(), settings.topic, settings.partitions);
  std::string value(settings.bytes, 'x');
  const auto began = Clock::now();
  for (std::uint64_t n = 0; Clock::now() - began < settings.duration;) {
    if (settings.in_flight > 0 && outcomes.open >= settings.in_flight) {
      rd_kafka_poll(producer.get(), 100);
      continue;
    }
    const std::string key = "session " + std::to_string(n % settings.sessions);
    const auto now = Clock::now().time_since_epoch().count();
    const auto error = rd_kafka_producev(
        producer.get(), RD_KAFKA_V_TOPIC(settings.topic.c_str()),
        RD_KAFKA_V_KEY(key.data(), key.size()), RD_KAFKA_V_VALUE(value.data(), value.size()),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_OPAQUE(reinterpret_cast<void*>(static_cast<std::intptr_t>(now))),
        RD_KAFKA_V_END);
    if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      rd_kafka_poll(producer.get(), 10);
      continue;
    }
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) give_up("produce", rd_kafka_err2str(error));
    ++outcomes.open;
    ++n;
    rd_kafka_poll(producer.get(), 0);
  }
  if (rd_kafka_flush(producer.get(), flush_ms) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    give_up("produce", "the broker does not take what was sent");
  }
  outcomes.result.took = Clock::now() - began;
  return outcomes.result;
}

}  // namespace conversed::bench
