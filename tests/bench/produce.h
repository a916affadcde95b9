#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/bench/load.h"

namespace conversed::bench {

struct ProduceSettings {
  std::string brokers;         // as librdkafka's bootstrap.servers
  std::string topic;           // made where there is none
  std::size_t partitions = 8;  // of the topic, if it is made
  std::size_t bytes = 256;     // of each record's value
  std::size_t in_flight = 0;   // records at a time whose outcome is open; 0: what the library takes
  std::uint64_t sessions = 1000;  // keys that the records have, in turn
  std::chrono::milliseconds duration{5'000};
};

// What librdkafka's producer does by itself, with the durability that the daemon asks for
// (idempotent, acks=all): as many records as it takes, until their outcomes are known. Ends the
// program with a message when it can't produce.
[[nodiscard]] LoadResult run_producer(const ProduceSettings& settings);

}  // namespace conversed::bench
