#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "queue/kafka/kafka_log.h"

namespace conversed::test {

// Topics of this test only, at the broker that tests/support/kafka.py started.
inline queue::KafkaLogSettings fresh_kafka_topics() {
  static std::atomic<int> count = 0;
  queue::KafkaLogSettings settings;
  const char* server = std::getenv("CONVERSED_TEST_KAFKA");
  if (server == nullptr) {
    ADD_FAILURE() << "CONVERSED_TEST_KAFKA is not set: run this by tests/support/kafka.py";
    return settings;
  }
  settings.bootstrap_servers = {server};
  settings.topic_prefix = "test" + std::to_string(getpid()) + "." + std::to_string(++count);
  settings.instance_id = "reader";
  settings.request_timeout = std::chrono::seconds(30);
  settings.delivery_timeout = std::chrono::seconds(30);
  settings.stop_timeout = std::chrono::seconds(30);
  return settings;
}

// Null, with a failure, if the log can't be opened. Waits until the open log has reached the
// broker.
inline std::unique_ptr<queue::Log> connected_log(const queue::KafkaLogSettings& settings) {
  auto log = queue::open_kafka_log(settings);
  if (!log) {
    ADD_FAILURE() << log.error().message;
    return nullptr;
  }
  if (const auto ranges = (*log)->ranges(); !ranges) ADD_FAILURE() << ranges.error().message;
  return std::move(*log);
}

}  // namespace conversed::test
