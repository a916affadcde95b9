#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "api/http/http_settings.h"
#include "api/live/rate_limiter.h"

namespace conversed::daemon {

// Writes a log line for each answer with an error, so that an operator finds its trace id. The line
// has method, route, status and reason, never a path, a query or a body. Thread-safe.
//
// Strangers can cause errors at will, so the lines per second are limited, separately for clients'
// errors and for the daemon's. The next line has the number of lines left out.
class ErrorLog {
 public:
  static constexpr std::uint32_t lines_per_second = 10;
  static constexpr std::uint32_t lines_at_once = 100;

  using TimePoint = std::chrono::steady_clock::time_point;
  void write(const api::ErrorAnswer& answer, TimePoint now = std::chrono::steady_clock::now());

 private:
  api::RateLimiter limiter_{
      {.requests_per_second = lines_per_second, .burst = lines_at_once, .max_names = 64}};
  std::array<std::atomic<std::uint64_t>, 2> suppressed_{};  // clients' errors, the daemon's errors
};

}  // namespace conversed::daemon
