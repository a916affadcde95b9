#include "daemon/telemetry/span_exporter.h"

#include <memory>

#include "daemon/ops/logging.h"
#include "daemon/telemetry/otlp.h"
#include "store/runtime/thread_name.h"

namespace conversed::daemon {
namespace {

constexpr const char* name = "telemetry";

// As the OTLP specification lists them.
bool worth_retrying(const HttpOutcome& outcome) {
  if (outcome.status == 0) return outcome.error != HttpError::invalid;
  return outcome.status == 429 || (outcome.status >= 502 && outcome.status <= 504);
}

}  // namespace

SpanExporter::SpanExporter(SpanExporterSettings settings, Egress egress, Spans& spans)
    : settings_(std::move(settings)),
      spans_(spans),
      http_({.name = name, .connections = 1, .own_thread = false}, std::move(egress)) {}

model::Result<void> SpanExporter::start() {
  if (auto started = http_.start(); !started) return started;
  heartbeat_ = model::heartbeat_of(settings_.heartbeats, name);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  return {};
}

void SpanExporter::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  http_.wake();
  thread_.join();
  http_.stop();
}

void SpanExporter::run(const std::stop_token& stop) {
  model::name_this_thread(name);
  for (;;) {
    heartbeat_.beat();
    const bool stops = stop.stop_requested();
    const auto batch = spans_.take(settings_.batch, stop, Clock::now() + settings_.interval);
    if (!batch.empty()) {
      deliver(batch, stop);
    } else if (stops) {
      heartbeat_ = {};
      return;
    }
  }
}

// Sends the batch until the collector takes it or refuses it for good.
void SpanExporter::deliver(const std::vector<Span>& batch, const std::stop_token& stop) {
  const std::string body = otlp_body(batch, settings_.instance);
  for (int attempts = 1;; ++attempts) {
    const auto outcome = post(body, stop);
    report(outcome);
    if (outcome.success()) return;
    if (!worth_retrying(outcome) || stop.stop_requested()) break;
    wait(backoff(settings_.backoff, attempts, outcome.retry_after, random_()), stop);
  }
  spans_.count_dropped(batch.size());
}

HttpOutcome SpanExporter::post(const std::string& body, const std::stop_token& stop) {
  HttpRequest request{.method = "POST",
                      .url = settings_.url,
                      .headers = settings_.headers,
                      .body = body,
                      .timeout = settings_.timeout};
  request.headers.emplace_back("Content-Type", "application/json");
  const auto ended = std::make_shared<std::optional<HttpOutcome>>();
  http_.send(std::move(request), [ended](HttpOutcome outcome) { *ended = std::move(outcome); });
  while (!*ended) {
    heartbeat_.beat();
    const auto now = Clock::now();
    if (stop.stop_requested() && !last_) last_ = now + time_to_stop;
    if (last_ && now >= *last_) {  // the client's stop ends it
      *ended = HttpOutcome();
      (*ended)->error = HttpError::aborted;
      break;
    }
    http_.run_once(last_.value_or(now + model::beat_interval));
  }
  return **std::move(ended);
}

void SpanExporter::wait(std::chrono::milliseconds pause, const std::stop_token& stop) {
  const auto until = Clock::now() + pause;
  while (!stop.stop_requested() && Clock::now() < until) {
    heartbeat_.beat();
    http_.run_once(until);  // `stop` wakes it
  }
}

// Logs the first failure, and the end of failures.
void SpanExporter::report(const HttpOutcome& outcome) {
  const bool fails = !outcome.success();
  if (fails == fails_) return;
  fails_ = fails;
  if (fails) {
    log::warn("spans can't be sent", {{"error", "the collector " + describe(outcome)}});
  } else {
    log::info("spans are sent again");
  }
}

}  // namespace conversed::daemon
