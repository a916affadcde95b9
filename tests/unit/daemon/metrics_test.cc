#include "daemon/ops/metrics.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "daemon/ops/sampler.h"
#include "tests/support/manual_clock.h"

namespace conversed::daemon {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, ASlowSourceDelaysNoOtherThread) {
  Metrics metrics;
  std::promise<void> entered;
  std::promise<void> released;
  std::atomic<bool> first = true;
  metrics.add_source([&] {
    if (!first.exchange(false)) return;
    entered.set_value();
    released.get_future().wait();
  });
  const std::jthread slow([&] { (void)metrics.expose(); });
  entered.get_future().wait();
  EXPECT_FALSE(metrics.expose().empty());
  released.set_value();
}

TEST(Sampler, ARequestToStopDoesNotWaitForTheSample) {
  Metrics metrics;
  tests::ManualClock clock{model::from_unix_ms(1'780'000'000'000)};
  api::History history;
  std::promise<void> entered;
  std::promise<void> released;
  metrics.add_source([&] {
    entered.set_value();
    released.get_future().wait();
  });
  Sampler sampler(metrics, clock, history);
  sampler.start();
  entered.get_future().wait();
  sampler.request_stop();
  released.set_value();
  sampler.stop();
  EXPECT_EQ(history.view({}).times.size(), 1U) << "it takes no further sample";
}

TEST(Metrics, CountsShowUnderTheirNames) {
  Metrics metrics;
  metrics.injects_accepted.add(3);
  metrics.injects_refused(429).add();
  metrics.injects_refused(429).add();
  metrics.requests(200).add(5);
  metrics.delivery_ended(DeliveryOutcome::retried, "e", "o");
  metrics.calls(CallOutcome::answered).add(2);
  metrics.log_lag.set(12);
  const auto text = metrics.expose();
  EXPECT_TRUE(has_line(text, "conversed_injects_accepted_total 3")) << text;
  EXPECT_TRUE(has_line(text, "conversed_injects_refused_total{status=\"429\"} 2"));
  EXPECT_TRUE(has_line(text, "conversed_http_requests_total{status=\"200\"} 5"));
  EXPECT_TRUE(has_line(text, "conversed_deliveries_total{outcome=\"retried\"} 1"));
  EXPECT_TRUE(has_line(text, "conversed_deliveries_total{outcome=\"delivered\"} 0"));
  EXPECT_TRUE(has_line(text, "conversed_calls_total{outcome=\"answered\"} 2"));
  EXPECT_TRUE(has_line(text, "conversed_log_lag 12"));
}

TEST(Metrics, OneOrganisationLeavesSeriesToTheOthers) {
  Metrics metrics;
  for (int n = 0; n < 30; ++n) {
    metrics.count(EndpointCount::events, "large" + std::to_string(n), 1, "large");
    metrics.count(FlowCount::turns, "flow" + std::to_string(n), 1, "large");
  }
  metrics.count(EndpointCount::events, "small", 1, "small");
  const auto text = metrics.expose();
  EXPECT_TRUE(has_line(text, "conversed_endpoint_events_total{endpoint=\"large19\"} 1"));
  EXPECT_TRUE(has_line(text, "conversed_endpoint_events_total{endpoint=\"other\"} 10"));
  EXPECT_TRUE(has_line(text, "conversed_flow_turns_total{flow=\"other\"} 10"));
  EXPECT_TRUE(has_line(text, "conversed_endpoint_events_total{endpoint=\"small\"} 1"));
}

TEST(Metrics, SeriesAboveTheLimitAreCountedAsOther) {
  Metrics metrics(28);  // two Endpoints, three Flows, three organisations
  metrics.count(EndpointCount::events, "e1", 1, "o1");
  metrics.count(EndpointCount::events, "e2", 1, "o1");
  for (const auto* flow : {"f1", "f2", "f3", "f4"}) {
    metrics.count(FlowCount::turns, flow, flow == std::string("f4") ? 3 : 2, "o1");
  }
  metrics.count(EndpointCount::events, "e3", 1, "o2");
  metrics.count(EndpointCount::events, "e1", 4, "");
  metrics.delivery_ended(DeliveryOutcome::retried, "e2", "o1");
  for (const auto* organisation : {"o1", "o2", "o3", "o4"}) {
    metrics.count(OrganisationCount::injects, organisation);
  }
  const auto text = metrics.expose();
  EXPECT_TRUE(has_line(text, "conversed_endpoint_events_total{endpoint=\"e1\"} 5")) << text;
  EXPECT_TRUE(has_line(text, "conversed_endpoint_events_total{endpoint=\"e2\"} 1"));
  EXPECT_TRUE(has_line(text, "conversed_endpoint_events_total{endpoint=\"other\"} 1"));
  EXPECT_TRUE(has_line(text, "conversed_flow_turns_total{flow=\"f1\"} 2"));
  EXPECT_TRUE(has_line(text, "conversed_flow_turns_total{flow=\"other\"} 3"));
  EXPECT_TRUE(has_line(text, "conversed_organisation_injects_total{organisation=\"other\"} 1"));
  EXPECT_TRUE(
      has_line(text, "conversed_endpoint_deliveries_total{endpoint=\"e2\",outcome=\"retried\"} 1"));
  EXPECT_EQ(metrics.deliveries(DeliveryOutcome::retried).value(), 1U);
  EXPECT_EQ(text.find("e3"), std::string::npos);
}

TEST(Metrics, EveryLineIsTextFormat) {
  Metrics metrics;
  metrics.turn_seconds.observe(0.002);
  metrics.requests(404).add();
  std::istringstream lines(metrics.expose());
  const std::regex sample(
      R"re([a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? ([0-9.e+-]+|\+Inf|Nan))re");
  const std::regex comment("# (HELP|TYPE) conversed_[a-z_]+ .+");
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(std::regex_match(line, sample) || std::regex_match(line, comment)) << line;
  }
}

TEST(Metrics, HistogramPutsAValueIntoItsBucket) {
  Metrics metrics;
  metrics.delivery_seconds.observe(0.003);
  const auto text = metrics.expose();
  EXPECT_TRUE(has_line(text, "conversed_delivery_seconds_bucket{le=\"0.0025\"} 0")) << text;
  EXPECT_TRUE(has_line(text, "conversed_delivery_seconds_bucket{le=\"0.005\"} 1"));
  EXPECT_TRUE(has_line(text, "conversed_delivery_seconds_count 1"));
}

TEST(Metrics, SourcesRunAtEachExpose) {
  Metrics metrics;
  std::uint64_t turns = 0;
  metrics.add_source([&] { metrics.turns.raise_to(++turns * 10); });
  EXPECT_TRUE(has_line(metrics.expose(), "conversed_turns_total 10"));
  EXPECT_TRUE(has_line(metrics.expose(), "conversed_turns_total 20"));
  metrics.turns.raise_to(5);
  EXPECT_EQ(metrics.turns.value(), 20U) << "a total never falls";
}

TEST(Metrics, ThreadsLoseNoCounts) {
  Metrics metrics;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 5000; ++i) {
          metrics.requests(200 + i % 4).add();
          metrics.turns.add();
        }
      });
    }
  }
  EXPECT_EQ(metrics.turns.value(), 20'000U);
  EXPECT_EQ(metrics.requests(203).value(), 5'000U);
}

double figure_of(const api::History& history, const std::string& metric, api::Figure figure) {
  for (const auto& series : history.view({}).series) {
    if (series.name == api::SeriesName{metric, figure}) return series.values.back();
  }
  ADD_FAILURE() << "no series of " << metric;
  return 0;
}

TEST(Sampler, MakesRatesOfCountersAndQuantilesOfHistograms) {
  Metrics metrics;
  const tests::ManualClock clock(model::from_unix_ms(1'780'000'000'000));
  api::History history;
  Sampler sampler(metrics, clock, history);
  metrics.turns.add(100);
  metrics.turn_seconds.observe(5);
  sampler.sample(std::chrono::seconds(0));
  metrics.turns.add(30);
  metrics.log_lag.set(12);
  metrics.calls(CallOutcome::failed).add(5);
  for (int i = 0; i < 98; ++i) metrics.turn_seconds.observe(0.0003);
  for (int i = 0; i < 2; ++i) metrics.turn_seconds.observe(0.2);
  sampler.sample(std::chrono::seconds(10));
  using api::Figure;
  EXPECT_DOUBLE_EQ(figure_of(history, "conversed_turns_total", Figure::rate), 3);
  EXPECT_DOUBLE_EQ(figure_of(history, "conversed_log_lag", Figure::value), 12);
  EXPECT_DOUBLE_EQ(figure_of(history, "conversed_calls_total{outcome=\"failed\"}", Figure::rate),
                   0.5);
  EXPECT_DOUBLE_EQ(figure_of(history, "conversed_turn_seconds", Figure::rate), 10);
  // The buckets end at 0.00025, 0.0005, 0.1 and 0.25.
  const double median = figure_of(history, "conversed_turn_seconds", Figure::median);
  EXPECT_GT(median, 0.00025);
  EXPECT_LE(median, 0.0005);
  const double p99 = figure_of(history, "conversed_turn_seconds", Figure::p99);
  EXPECT_GT(p99, 0.1);
  EXPECT_LE(p99, 0.25);
  EXPECT_TRUE(std::isnan(figure_of(history, "conversed_call_seconds", Figure::p99)));
}

}  // namespace
}  // namespace conversed::daemon
