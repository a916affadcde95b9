#include "daemon/ops/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/ops/labelled.h"
#include "store/runtime/guarded.h"

namespace conversed::daemon {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

// Seconds; a quick answer of this daemon takes 100 µs, a slow upstream 10 s.
const Buckets latency_buckets{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                              0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
const Buckets age_buckets{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 3600, 86400};

// The family returns the same counter for the same labels.
Counter of_status(prometheus::Family<prometheus::Counter>& family, int status) {
  if (status < 100 || status > 599) status = 500;
  return Counter(family.Add({{"status", std::to_string(status)}}));
}

// Empty: it is a series of a part of the daemon.
std::optional<std::string> name_with_labels(
    const std::string& family, const std::vector<prometheus::ClientMetric::Label>& all) {
  static constexpr std::array<std::string_view, 3> of_the_whole{"outcome", "reason", "status"};
  if (all.empty()) return family;
  std::string name = family + "{";
  for (const auto& [label, value] : all) {
    if (std::ranges::find(of_the_whole, label) == of_the_whole.end()) return std::nullopt;
    if (name.back() != '{') name += ',';
    name.append(label).append("=\"").append(value).append("\"");
  }
  return name + "}";
}

Reading reading_of(std::string name, prometheus::MetricType type,
                   const prometheus::ClientMetric& metric) {
  if (type == prometheus::MetricType::Counter) {
    return {std::move(name), Reading::Kind::counter, metric.counter.value};
  }
  if (type == prometheus::MetricType::Gauge) {
    return {std::move(name), Reading::Kind::gauge, metric.gauge.value};
  }
  Reading reading{std::move(name), Reading::Kind::histogram,
                  static_cast<double>(metric.histogram.sample_count)};
  for (const auto& bucket : metric.histogram.bucket) {
    if (std::isinf(bucket.upper_bound)) continue;
    reading.buckets.push_back({bucket.upper_bound, static_cast<double>(bucket.cumulative_count)});
  }
  return reading;
}

}  // namespace

void Counter::add(std::uint64_t amount) {
  counter_->Increment(static_cast<double>(amount));
}

void Counter::raise_to(std::uint64_t total) {
  // The library can't raise a counter to a total. All counters share the lock, because each holds
  // it for nanoseconds.
  static std::mutex raising;
  const std::lock_guard lock(raising);
  const double missing = static_cast<double>(total) - counter_->Value();
  if (missing > 0) counter_->Increment(missing);
}

std::uint64_t Counter::value() const {
  return static_cast<std::uint64_t>(counter_->Value());
}

void Gauge::set(double value) {
  gauge_->Set(value);
}

void Histogram::observe(double value) {
  histogram_->Observe(value);
}

std::uint64_t Histogram::count() const {
  return histogram_->Collect().histogram.sample_count;
}

struct Metrics::Impl {
  explicit Impl(std::size_t series) : max_series(series) {}

  prometheus::Registry registry;
  const std::size_t max_series;
  LabelledCounters endpoints{
      registry,
      "endpoint",
      {{"conversed_endpoint_events_total", "Events that were processed, by Endpoint."},
       {"conversed_endpoint_dead_letters_total", "Events that failed, by Endpoint."},
       {"conversed_endpoint_delivery_seconds_total", "The time of POSTs, by Endpoint."},
       of_endpoint("delivered"),
       of_endpoint("retried"),
       of_endpoint("dead_letter"),
       of_endpoint("dropped")},
      max_series / 2};
  LabelledCounters flows{
      registry,
      "flow",
      {{"conversed_flow_turns_total", "Turns that were committed, by Flow."},
       {"conversed_flow_turn_seconds_total", "The time of committed Turns, by Flow."}},
      max_series / 4};
  LabelledCounters organisations{
      registry,
      "organisation",
      {{"conversed_organisation_events_total", "Events that were processed, by organisation."},
       {"conversed_organisation_injects_total", "Injects that were processed, by organisation."}},
      max_series / 4};
  prometheus::TextSerializer serializer;
  prometheus::Family<prometheus::Counter>& requests{
      family("conversed_http_requests_total", "HTTP requests that were answered, by status.")};
  prometheus::Family<prometheus::Counter>& injects_refused{
      family("conversed_injects_refused_total", "Injects that were refused, by status.")};
  prometheus::Family<prometheus::Gauge>& waiting_seconds{
      prometheus::BuildGauge()
          .Name("conversed_waiting_seconds")
          .Help("How long the oldest thing has waited, by the reason.")
          .Register(registry)};
  std::vector<Histogram> waits = by_cause({"log", "events", "inbox", "recovery"});
  std::vector<Counter> deliveries = outcomes(
      "conversed_deliveries_total", "POSTs to webhooks that ended, by the outcome for the output.",
      {"delivered", "retried", "dead_letter", "dropped"});
  std::vector<Counter> calls =
      outcomes("conversed_calls_total", "Attempts of calls of Nodes, by outcome.",
               {"answered", "failed", "retried"});
  model::Guarded<std::vector<std::function<void()>>> sources;

  static LabelledCounters::Column of_endpoint(const char* outcome) {
    return {.name = "conversed_endpoint_deliveries_total",
            .help = "POSTs to webhooks that ended, by Endpoint.",
            .labels = {{"outcome", outcome}}};
  }
  std::vector<Histogram> by_cause(std::initializer_list<const char*> causes) {
    auto& histograms =
        prometheus::BuildHistogram()
            .Name("conversed_event_wait_seconds")
            .Help("From an event's acceptance to its Turn, by the cause of the wait.")
            .Register(registry);
    std::vector<Histogram> handles;
    for (const char* cause : causes) {
      handles.emplace_back(histograms.Add({{"reason", cause}}, age_buckets));
    }
    return handles;
  }
  prometheus::Family<prometheus::Counter>& family(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  std::vector<Counter> outcomes(const char* name, const char* help,
                                std::initializer_list<const char*> values) {
    auto& counters = family(name, help);
    std::vector<Counter> handles;
    for (const char* value : values) handles.emplace_back(counters.Add({{"outcome", value}}));
    return handles;
  }
  Histogram histogram(const char* name, const char* help, const Buckets& buckets) {
    return Histogram(
        prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets));
  }
};

Metrics::Metrics(std::size_t max_series) : impl_(std::make_unique<Impl>(max_series)) {}

Metrics::~Metrics() = default;

Counter Metrics::counter(const char* name, const char* help) {
  return Counter(impl_->family(name, help).Add({}));
}

Gauge Metrics::gauge(const char* name, const char* help) {
  return Gauge(prometheus::BuildGauge().Name(name).Help(help).Register(impl_->registry).Add({}));
}

Histogram Metrics::latency(const char* name, const char* help) {
  return impl_->histogram(name, help, latency_buckets);
}

Histogram Metrics::age(const char* name, const char* help) {
  return impl_->histogram(name, help, age_buckets);
}

Counter Metrics::requests(int status) {
  return of_status(impl_->requests, status);
}

Counter Metrics::injects_refused(int status) {
  return of_status(impl_->injects_refused, status);
}

void Metrics::inject_answered(int status, std::chrono::steady_clock::duration took) {
  if (status >= 300) return injects_refused(status).add();
  injects_accepted.add();
  accept_seconds.observe(std::chrono::duration<double>(took).count());
}

const Counter& Metrics::deliveries(DeliveryOutcome outcome) const {
  return impl_->deliveries[static_cast<std::size_t>(outcome)];
}

void Metrics::delivery_ended(DeliveryOutcome outcome, std::string_view endpoint_id,
                             std::string_view organisation_id) {
  const auto at = static_cast<std::size_t>(outcome);
  impl_->deliveries[at].add();
  impl_->endpoints.add(endpoint_id, static_cast<std::size_t>(EndpointCount::deliveries) + at, 1,
                       organisation_id);
}

void Metrics::event_waited(WaitCause cause, std::chrono::duration<double> time) {
  impl_->waits[static_cast<std::size_t>(cause)].observe(std::max(0.0, time.count()));
}

void Metrics::count(EndpointCount what, std::string_view endpoint_id, double amount,
                    std::string_view organisation_id) {
  impl_->endpoints.add(endpoint_id, static_cast<std::size_t>(what), amount, organisation_id);
}

void Metrics::count(FlowCount what, std::string_view flow_id, double amount,
                    std::string_view organisation_id) {
  impl_->flows.add(flow_id, static_cast<std::size_t>(what), amount, organisation_id);
}

void Metrics::count(OrganisationCount what, std::string_view organisation_id, double amount) {
  impl_->organisations.add(organisation_id, static_cast<std::size_t>(what), amount,
                           organisation_id);
}

Counter& Metrics::calls(CallOutcome outcome) {
  return impl_->calls[static_cast<std::size_t>(outcome)];
}

Gauge Metrics::waiting_seconds(std::string_view reason) {
  return Gauge(impl_->waiting_seconds.Add({{"reason", std::string(reason)}}));
}

void Metrics::add_source(std::function<void()> source) {
  impl_->sources.with([&](auto& sources) { sources.push_back(std::move(source)); });
}

void Metrics::ask_sources() {
  const auto all = impl_->sources.with([](const auto& sources) { return sources; });
  for (const auto& source : all) source();
}

std::string Metrics::expose() {
  ask_sources();
  std::ostringstream text;
  impl_->serializer.Serialize(text, impl_->registry.Collect());
  return std::move(text).str();
}

std::vector<Reading> Metrics::read() {
  ask_sources();
  std::vector<Reading> readings;
  for (const auto& family : impl_->registry.Collect()) {
    for (const auto& metric : family.metric) {
      auto name = name_with_labels(family.name, metric.label);
      if (name) readings.push_back(reading_of(*std::move(name), family.type, metric));
    }
  }
  return readings;
}

}  // namespace conversed::daemon
