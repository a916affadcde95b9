#include "daemon/telemetry/spans.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/telemetry/otlp.h"

namespace conversed::daemon {
namespace {

using std::chrono::steady_clock;

Span span(std::string name) {
  return {.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736",
          .span_id = "00f067aa0ba902b7",
          .parent_id = "",
          .name = std::move(name),
          .begin = Span::Time(std::chrono::microseconds(1'700'000'000'000'001)),
          .took = std::chrono::microseconds(2'500),
          .attributes = {{"a", "text"}, {"n", std::int64_t{7}}},
          .error = ""};
}

TEST(Spans, SpansAboveTheLimitAreDroppedAndCounted) {
  Spans spans(3);
  spans.add(span("1"));
  spans.add({span("2"), span("3"), span("4")});
  spans.add(span("5"));
  EXPECT_EQ(spans.dropped(), 2U);
  const auto taken = spans.take(2, {}, steady_clock::time_point::max());
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].name, "1");
  spans.add(span("6"));
  const auto rest = spans.take(10, {}, steady_clock::now());
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_EQ(rest[0].name, "3");
  EXPECT_EQ(rest[1].name, "6");
  EXPECT_EQ(spans.dropped(), 2U);
}

TEST(Spans, StopEndsTheWait) {
  Spans spans;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(spans.take(1, stop.get_token(), steady_clock::time_point::max()).empty());
}

TEST(Otlp, BodyHasIdsAsHexAndTimesInNanoseconds) {
  auto failed = span("b\xff");
  failed.parent_id = "00000000000000aa";
  failed.error = "503";
  const std::array both{span("a"), failed};
  const auto body = nlohmann::json::parse(otlp_body(both, "one"));
  const auto& resource = body["resourceSpans"][0];
  EXPECT_EQ(resource["resource"]["attributes"][2],
            (nlohmann::json{{"key", "service.instance.id"}, {"value", {{"stringValue", "one"}}}}));
  const auto& shown = resource["scopeSpans"][0]["spans"];
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_EQ(shown[0]["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(shown[0]["startTimeUnixNano"], "1700000000000001000");
  EXPECT_EQ(shown[0]["endTimeUnixNano"], "1700000000002501000");
  EXPECT_FALSE(shown[0].contains("parentSpanId"));
  EXPECT_FALSE(shown[0].contains("status"));
  EXPECT_EQ(shown[0]["attributes"][1],
            (nlohmann::json{{"key", "n"}, {"value", {{"intValue", "7"}}}}));
  EXPECT_EQ(shown[1]["parentSpanId"], "00000000000000aa");
  EXPECT_EQ(shown[1]["status"]["code"], 2);
  EXPECT_EQ(shown[1]["name"], "b\xef\xbf\xbd");
}

}  // namespace
}  // namespace conversed::daemon
