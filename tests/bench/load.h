#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/latency.h"

namespace conversed::bench {

struct LoadSettings {
  std::vector<std::uint16_t> ports;  // on 127.0.0.1; connections go to them in turn
  std::string head;  // request line and headers except Content-Length, each line with CRLF
  std::function<std::string(std::uint64_t)> body;  // of the n-th request, from 0
  std::size_t connections = 64;
  std::chrono::milliseconds duration{0};  // 0: until `requests` are answered
  std::uint64_t requests = 0;
};

struct LoadResult {
  std::uint64_t answered = 0;  // with status 200
  std::uint64_t refused = 0;   // with another status, or by a broken connection
  std::chrono::nanoseconds took{};
  Latency latency;
};

// Keeps one request in flight on each of the kept-alive connections, from one thread (closed loop).
// Ends the program with a message if it can't connect.
[[nodiscard]] LoadResult run_load(const LoadSettings& settings);

}  // namespace conversed::bench
