#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
  // Raises the counter to a total that is counted elsewhere. Never lowers it.
  void raise_to(std::uint64_t total);
  [[nodiscard]] std::uint64_t value() const;

 private:
  prometheus::Counter* counter_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge& gauge) : gauge_(&gauge) {}
  void set(double value);

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

// One series of the metrics, as it is now.
struct Reading {
  enum class Kind : std::uint8_t { counter, gauge, histogram };
  // Of a histogram, with the number of observations that it does not exceed.
  struct Bucket {
    double upper;
    double count;
  };
  std::string metric;  // with its labels: `conversed_calls_total{outcome="failed"}`
  Kind kind = Kind::gauge;
  double value = 0;               // of a histogram: the number of observations
  std::vector<Bucket> buckets{};  // of a histogram: those that have a bound
};

enum class DeliveryOutcome : std::uint8_t { delivered, retried, dead_letter, dropped };
enum class CallOutcome : std::uint8_t { answered, failed, retried };
// Why an event has waited for its Turn: for the log and a worker; for earlier events of its session
// in the same batch; in the session's inbox, for an execution; to run alone after a crash.
enum class WaitCause : std::uint8_t { log, events, inbox, recovery };

// Counts by one Endpoint. The outcomes of deliveries are behind them, in their order.
enum class EndpointCount : std::uint8_t { events, dead_letters, delivery_seconds, deliveries };
enum class FlowCount : std::uint8_t { turns, turn_seconds };
enum class OrganisationCount : std::uint8_t { events, injects };

// The daemon's metrics, under names that dashboards rely on (`conversed_...`). Labels have few,
// fixed values, or the ids of Endpoints, Flows and organisations: never URLs or anything of a user.
// Thread-safe.
class Metrics {
 public:
  // `max_series`: the most series with the id of an Endpoint (half of them), a Flow or an
  // organisation (a quarter each).
  explicit Metrics(std::size_t max_series = 1000);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Answered HTTP requests, by status. A status outside of 100 to 599 counts as 500.
  Counter requests(int status);
  // Refused injects, by status, as above.
  Counter injects_refused(int status);
  // Counts an answered inject. Observes the time of an accepted one.
  void inject_answered(int status, std::chrono::steady_clock::duration took);
  [[nodiscard]] const Counter& deliveries(DeliveryOutcome outcome) const;
  void delivery_ended(DeliveryOutcome outcome, std::string_view endpoint_id,
                      std::string_view organisation_id);
  Counter& calls(CallOutcome outcome);
  void event_waited(WaitCause cause, std::chrono::duration<double> time);
  // The organisation is that of the Endpoint or Flow; empty: not known (LabelledCounters).
  void count(EndpointCount what, std::string_view endpoint_id, double amount,
             std::string_view organisation_id);
  void count(FlowCount what, std::string_view flow_id, double amount,
             std::string_view organisation_id);
  void count(OrganisationCount what, std::string_view organisation_id, double amount = 1);
  // How long the oldest thing has waited for this reason (store/model/reason.h).
  Gauge waiting_seconds(std::string_view reason);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  // first: the handles below come from it
  Counter counter(const char* name, const char* help);
  Gauge gauge(const char* name, const char* help);
  Histogram latency(const char* name, const char* help);
  Histogram age(const char* name, const char* help);

 public:
  Counter injects_accepted =
      counter("conversed_injects_accepted_total", "Injects that were answered with 2xx.");
  Counter events_appended =
      counter("conversed_events_appended_total", "Events that became durable.");
  Counter turns = counter("conversed_turns_total", "Turns whose effects were committed.");
  Counter turn_conflicts = counter("conversed_turn_conflicts_total",
                                   "Turn batches that were run again after a conflict.");
  Counter dead_letters =
      counter("conversed_dead_letters_total", "Events that could not be processed.");
  Counter commits = counter("conversed_commits_total", "Transactions of the Committer.");
  Counter session_commits = counter("conversed_session_commits_total",
                                    "Session commits that the Committer made durable.");
  Counter timers_fired = counter("conversed_timers_fired_total", "Timers that were appended.");
  Counter model_prompt_tokens = counter("conversed_model_prompt_tokens_total",
                                        "Tokens of questions, as language models counted them.");
  Counter model_completion_tokens = counter("conversed_model_completion_tokens_total",
                                            "Tokens of answers, as language models counted them.");
  Counter follow_ups_sent =
      counter("conversed_follow_ups_sent_total", "Follow-ups of silent users.");
  Counter follow_ups_dropped = counter("conversed_follow_ups_dropped_total",
                                       "Follow-ups that came too late, or were too many.");
  Counter spans_dropped = counter("conversed_spans_dropped_total",
                                  "Spans that the collector of traces did not take in time.");
  Histogram accept_seconds =
      latency("conversed_accept_seconds", "From an inject's whole request to its durable accept.");
  Histogram turn_seconds = latency("conversed_turn_seconds", "One turn batch, with its reads.");
  Histogram delivery_seconds = latency("conversed_delivery_seconds", "One POST to a webhook.");
  Histogram output_age_seconds =
      age("conversed_output_age_seconds", "From an output's creation to its delivery.");
  Histogram call_seconds = latency("conversed_call_seconds", "One attempt of a call of a Node.");
  Histogram search_seconds =
      latency("conversed_knowledge_search_seconds", "One search in knowledge.");
  Gauge deliveries_pending = gauge("conversed_deliveries_pending",
                                   "Outputs that wait for their delivery, counted up to 100000.");
  Gauge calls_in_flight =
      gauge("conversed_calls_in_flight", "Calls of Nodes that wait for their upstream.");
  Gauge dead_letters_waiting =
      gauge("conversed_dead_letters_waiting",
            "Dead letters that are neither replayed nor discarded, counted up to 100000.");
  Gauge log_lag = gauge("conversed_log_lag", "Records appended and not yet finished.");
  Gauge log_healthy = gauge("conversed_log_healthy", "1 if the log takes appends.");
  Gauge store_healthy = gauge("conversed_store_healthy", "1 if the store commits.");
  Gauge ready = gauge("conversed_ready", "1 if /readyz answers 200.");

  // `source` is called at the begin of every `expose` and `read`, to bring gauges and totals up to
  // date. Several threads may call it at the same time, so none waits for the store because of
  // another. The objects it uses must outlive this.
  void add_source(std::function<void()> source);

  // All metrics in Prometheus' text format 0.0.4 (`text/plain; version=0.0.4; charset=utf-8`).
  [[nodiscard]] std::string expose();

  // The series of the whole daemon: those without labels, and those by outcome, status or reason.
  [[nodiscard]] std::vector<Reading> read();

 private:
  void ask_sources();
};

}  // namespace conversed::daemon
