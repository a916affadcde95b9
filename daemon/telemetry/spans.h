#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/outbound/http_client.h"
#include "store/model/clock.h"

namespace conversed::daemon {

// A part of a trace, as OpenTelemetry defines it. Never has a body, a token, a query or the path of
// a URL.
struct Span {
  using Time = std::chrono::sys_time<std::chrono::microseconds>;
  using Attribute = std::pair<std::string_view, std::variant<std::int64_t, std::string>>;
  enum class Kind : std::uint8_t { internal = 1, server = 2, client = 3 };  // OTLP's numbers

  std::string trace_id;
  std::string span_id;
  std::string parent_id;  // empty: it has none
  std::string name;
  Kind kind = Kind::internal;
  Time begin{};
  std::chrono::microseconds took{};
  std::vector<Attribute> attributes;  // their names are constants
  std::string error;                  // its type (`error.type`); empty: it went well
};

// The span of one try of a call or delivery for this event, whose trace is `trace_id`. `server`:
// the host, maybe with a port. `earlier`: the number of tries before.
[[nodiscard]] Span try_span(std::string_view name, std::string trace_id, std::string_view event_id,
                            std::string span_id, std::string server, int earlier,
                            const HttpOutcome& outcome, model::Timestamp ended);

// The spans that wait for the collector. At most `limit`: further ones are dropped and counted.
// Thread-safe.
class Spans {
 public:
  explicit Spans(std::size_t limit = 8192) : limit_(limit) {}

  void add(Span span);  // takes a short lock
  void add(std::vector<Span> spans);

  // Waits for `most` spans, until then or until the stop is requested. Takes at most `most`.
  [[nodiscard]] std::vector<Span> take(std::size_t most, const std::stop_token& stop,
                                       std::chrono::steady_clock::time_point until);

  void count_dropped(std::size_t spans) { dropped_ += spans; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  const std::size_t limit_;
  std::atomic<std::uint64_t> dropped_{0};
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<Span> waiting_;
  std::size_t wanted_ = 0;  // by a `take` that waits; 0: none waits
};

}  // namespace conversed::daemon
