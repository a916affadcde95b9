#include "store/model/trace.h"

#include <gtest/gtest.h>

#include "store/model/ids.h"

namespace conversed::model {
namespace {

const std::string trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string valid = "00-" + trace_id + "-00f067aa0ba902b7-01";

TEST(Trace, ValidTraceparentIsTaken) {
  const auto trace = parse_traceparent(valid);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->trace_id, trace_id);
  EXPECT_EQ(trace->parent_id, "00f067aa0ba902b7");
  EXPECT_TRUE(trace->sampled);
}

TEST(Trace, FutureVersionsMayBeLonger) {
  EXPECT_TRUE(parse_traceparent("cc-" + valid.substr(3) + "-what-the-future-brings"));
  EXPECT_FALSE(parse_traceparent("cc-" + valid.substr(3) + ".x"));
  EXPECT_FALSE(parse_traceparent(valid + "-x"));
}

TEST(Trace, MalformedTraceparentsAreNotTaken) {
  EXPECT_FALSE(parse_traceparent(""));
  EXPECT_FALSE(parse_traceparent(valid.substr(1)));
  EXPECT_FALSE(parse_traceparent("ff" + valid.substr(2)));
  EXPECT_FALSE(parse_traceparent("00-" + std::string(32, '0') + "-00f067aa0ba902b7-01"));
  EXPECT_FALSE(parse_traceparent("00-" + trace_id + "-0000000000000000-01"));
  std::string upper = valid;
  upper[4] = 'B';
  EXPECT_FALSE(parse_traceparent(upper));
  for (const std::size_t dash : {2U, 35U, 52U}) {
    std::string broken = valid;
    broken[dash] = '_';
    EXPECT_FALSE(parse_traceparent(broken));
  }
}

TEST(Trace, MadeTraceparentIsTaken) {
  const auto span = new_span_id();
  const auto trace = parse_traceparent(make_traceparent(trace_id, span, false));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->trace_id, trace_id);
  EXPECT_EQ(trace->parent_id, span);
  EXPECT_FALSE(trace->sampled);
  EXPECT_NE(span, new_span_id());
}

TEST(Trace, TracestateIsTakenInTheFormOfTheStandard) {
  const std::string longest = "k=" + std::string(256, 'v') + ",a=" + std::string(251, 'v');
  ASSERT_EQ(longest.size(), 512U);
  std::string many = "a=1";
  for (int i = 1; i < 32; ++i) many += ",a" + std::to_string(i) + "=1";
  for (const std::string& good :
       {std::string("congo=t61rcWkgMzE"), std::string("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        std::string("a=1 , \tb=2"), std::string("a=1,,b=2,"), std::string("a-b_c*d/e=~ !"),
        std::string("0tenant@system=1"), longest, many}) {
    EXPECT_TRUE(is_tracestate(good)) << good;
  }
  for (const std::string& bad : {std::string(),
                                 std::string(", ,"),
                                 std::string("a"),
                                 std::string("=1"),
                                 std::string("a="),
                                 std::string("a=1=2"),
                                 std::string("A=1"),
                                 std::string("a b=1"),
                                 std::string("a =1"),
                                 std::string("1a=1"),
                                 std::string("@a=1"),
                                 std::string("a@=1"),
                                 std::string("a@b@c=1"),
                                 std::string("a@1b=1"),
                                 std::string("a=\x7f"),
                                 std::string("a=1\r\nX: y"),
                                 std::string("a=\xc3\xa4"),
                                 std::string(257, 'k') + "=1",
                                 "k=" + std::string(257, 'v'),
                                 "t@" + std::string(15, 's') + "=1",
                                 longest + 'v',
                                 many + ",b=1"}) {
    EXPECT_FALSE(is_tracestate(bad)) << bad;
  }
}

TEST(Trace, EventsIdTellsWhetherItsTraceIsSampled) {
  for (int i = 0; i < 100; ++i) {
    for (const bool sampled : {false, true}) {
      const auto id = new_event_id(from_unix_ms(i), sampled);
      EXPECT_TRUE(is_id(id));
      EXPECT_EQ(is_sampled(id), sampled);
      EXPECT_EQ(is_sampled(id + "-c1"), sampled) << "of its call";
    }
  }
}

TEST(Trace, ShareOfTracesIsSampledByTheirIds) {
  int sampled = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto id = new_trace_id();
    EXPECT_TRUE(in_sample(id, 1));
    EXPECT_FALSE(in_sample(id, 0));
    EXPECT_EQ(in_sample(id, 0.25), in_sample(std::string(18, '0') + id.substr(18), 0.25));
    if (in_sample(id, 0.25)) ++sampled;
  }
  EXPECT_GT(sampled, 100);
  EXPECT_LT(sampled, 500);
  EXPECT_TRUE(
      in_sample("0000000000000000"
                "00c0000000000000",
                0.25));
  EXPECT_FALSE(
      in_sample("0000000000000000"
                "00bffffffffff000",
                0.25));
}

TEST(Trace, SpanOfAnEventIsTheSameInEachDaemon) {
  const auto span = span_of_event("0k3l9x2abcdefghijklmnopq");
  EXPECT_EQ(span, "c7fc9d6cf2d23b81");
  EXPECT_NE(span, span_of_event("0k3l9x2abcdefghijklmnopr"));
  EXPECT_TRUE(parse_traceparent(make_traceparent(trace_id, span, true)));
}

}  // namespace
}  // namespace conversed::model
