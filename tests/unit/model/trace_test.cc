#include "store/model/trace.h"

#include <gtest/gtest.h>

namespace conversed::model {
namespace {

const std::string trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string valid = "00-" + trace_id + "-00f067aa0ba902b7-01";

TEST(Trace, ValidTraceparentIsTaken) {
  const auto trace = parse_traceparent(valid);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->trace_id, trace_id);
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

TEST(Trace, NewTracesAreValidAndDistinct) {
  const auto made = make_traceparent(trace_id, false);
  const auto trace = parse_traceparent(made);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->trace_id, trace_id);
  EXPECT_FALSE(trace->sampled);
  EXPECT_NE(made, make_traceparent(trace_id, false));
}

}  // namespace
}  // namespace conversed::model
