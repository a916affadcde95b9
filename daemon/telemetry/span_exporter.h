#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/outbound/http_client.h"
#include "daemon/service/backoff.h"
#include "daemon/service/service.h"
#include "daemon/telemetry/spans.h"
#include "store/runtime/heartbeat.h"

namespace conversed::daemon {

struct SpanExporterSettings {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string instance;  // this daemon's name
  std::size_t batch = 512;
  std::chrono::milliseconds interval{1'000};  // after which a smaller batch is sent
  std::chrono::milliseconds timeout{10'000};  // of one request
  BackoffSettings backoff{.first = std::chrono::milliseconds(500),
                          .max = std::chrono::milliseconds(30'000),
                          .max_asked = std::chrono::milliseconds(300'000)};
  model::Heartbeats* heartbeats = nullptr;  // of its thread; must outlive it. Null: none
};

// Sends spans to the collector, from a thread of its own. A batch that the collector does not take
// is sent again with backoff, while Spans fills up and drops. A batch that it refuses for good is
// dropped. `stop` sends the spans that wait, within `time_to_stop`.
//
// Invariants:
// - A collector that is away or slow delays nothing but spans.
//   Kept by: test_traces.py LateCollector.
class SpanExporter final : public Service {
 public:
  static constexpr std::chrono::milliseconds time_to_stop{1'000};

  // `spans` must outlive it.
  SpanExporter(SpanExporterSettings settings, Egress egress, Spans& spans);
  ~SpanExporter() override { stop(); }

  [[nodiscard]] model::Result<void> start() override;
  void stop() override;

 private:
  using Clock = std::chrono::steady_clock;

  void run(const std::stop_token& stop);
  void deliver(const std::vector<Span>& batch, const std::stop_token& stop);
  [[nodiscard]] HttpOutcome post(const std::string& body, const std::stop_token& stop);
  void wait(std::chrono::milliseconds pause, const std::stop_token& stop);
  void report(const HttpOutcome& outcome);

  const SpanExporterSettings settings_;
  Spans& spans_;
  HttpClient http_;
  bool fails_ = false;
  std::optional<Clock::time_point> last_;  // when a stop ends the request in hand
  std::mt19937_64 random_{std::random_device{}()};
  model::Heartbeat heartbeat_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace conversed::daemon
