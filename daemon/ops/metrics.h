#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace conversed::daemon {

// Handles of single metrics. Owned by Metrics, valid as long as it lives. Thread-safe, a few
// atomic operations each.
class Counter {
 public:
  explicit Counter(prometheus::Counter& counter) : counter_(&counter) {}
  void add(std::uint64_t amount = 1);
  // For a total that somebody else counts: raises the counter to it, never lowers it. From one
  // thread at a time, as the sources of Metrics are.
  void raise_to(std::uint64_t total);
  [[nodiscard]] std::uint64_t value() const;

 private:
  prometheus::Counter* counter_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge& gauge) : gauge_(&gauge) {}
  void set(double value);
  void add(double amount);
  [[nodiscard]] double value() const;

 private:
  prometheus::Gauge* gauge_;
};

class Histogram {
 public:
  explicit Histogram(prometheus::Histogram& histogram) : histogram_(&histogram) {}
  void observe(double value);  // takes a short lock
  [[nodiscard]] std::uint64_t count() const;

 private:
  prometheus::Histogram* histogram_;
};

enum class DeliveryOutcome : std::uint8_t { delivered, retried, dead_letter, dropped };
enum class CallOutcome : std::uint8_t { answered, failed, retried };

// What the daemon measures, under names that dashboards rely on (`conversed_...`). Labels have few,
// fixed values: never ids, URLs or anything of a user. Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // HTTP requests that were answered, by status; one out of 100 to 599 counts as 500.
  Counter requests(int status);
  // Injects that were refused, by status; as above.
  Counter injects_refused(int status);
  // An inject was answered: counts it, and observes the time of an accepted one.
  void inject_answered(int status, std::chrono::steady_clock::duration took);
  Counter& deliveries(DeliveryOutcome outcome);
  Counter& calls(CallOutcome outcome);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  // first: the handles below come from it

 public:
  Counter injects_accepted;
  Counter events_appended;
  Counter turns;
  Counter turn_conflicts;
  Counter dead_letters;
  Counter commits;          // transactions
  Counter session_commits;  // sessions' batches within them
  Counter timers_fired;
  Counter model_prompt_tokens;      // as language models count them
  Counter model_completion_tokens;  // likewise
  Counter follow_ups_sent;
  Counter follow_ups_dropped;
  Histogram accept_seconds;      // from an inject's whole request to its durable accept
  Histogram turn_seconds;        // of one turn batch, its reads included
  Histogram delivery_seconds;    // of one POST to a webhook
  Histogram output_age_seconds;  // from an output's creation to its delivery
  Histogram call_seconds;        // of one attempt
  Histogram search_seconds;      // of one search in knowledge
  Gauge deliveries_pending;
  Gauge calls_in_flight;
  Gauge dead_letters_waiting;
  Gauge log_lag;      // records appended and not yet finished
  Gauge log_healthy;  // 1 or 0, as the next two
  Gauge store_healthy;
  Gauge ready;

  // `source` is called at the begin of every `expose`, one call at a time, to bring gauges and
  // totals up to date. It must be quick, and what it refers to must live as long as this.
  void add_source(std::function<void()> source);

  // All metrics in Prometheus' text format 0.0.4 (`text/plain; version=0.0.4; charset=utf-8`).
  [[nodiscard]] std::string expose();
};

}  // namespace conversed::daemon
