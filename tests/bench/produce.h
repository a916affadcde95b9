#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/bench/load.h"

namespace conversed::bench {

struct ProduceSettings {
  std::string brokers;         // as librdkafka's bootstrap.servers
  std::string topic;           // made if it is missing
  std::size_t partitions = 8;  // of a topic that it makes
  std::size_t bytes = 256;     // of each record's value
  std::size_t in_flight = 0;  // records with an open outcome at a time; 0: the limit of the library
  std::uint64_t sessions = 1000;  // the records have these keys in turn
  std::chrono::milliseconds duration{5'000};
};

// The throughput of librdkafka's producer alone, with the daemon's durability (idempotent,
// acks=all). Produces as many records as the producer takes and waits for their outcomes. Ends the
// program with a message if it can't produce.
[[nodiscard]] LoadResult run_producer(const ProduceSettings& settings);

}  // namespace conversed::bench
