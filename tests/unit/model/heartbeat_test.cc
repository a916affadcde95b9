#include "store/runtime/heartbeat.h"

#include <gtest/gtest.h>

#include <optional>

namespace conversed::model {
namespace {

using std::chrono::milliseconds;
using Names = std::vector<std::string>;

constexpr milliseconds limit{3'000};

class HeartbeatsTest : public testing::Test {
 protected:
  Names look_after(milliseconds passed) {
    now_ += passed;
    return heartbeats_.stalled(now_, limit);
  }

  Heartbeats heartbeats_;
  Heartbeats::Time now_{};
};

TEST_F(HeartbeatsTest, ALoopThatBeatsIsNotStalledHoweverLongItRuns) {
  auto heartbeat = heartbeats_.add("worker 1");
  for (int i = 0; i < 10; ++i) {
    heartbeat.beat();
    EXPECT_EQ(look_after(limit), Names());
  }
}

TEST_F(HeartbeatsTest, ALoopWithoutABeatForTheLimitIsStalledUntilItBeatsAgain) {
  auto heartbeat = heartbeats_.add("worker 1");
  auto other = heartbeats_.add("worker 2");
  EXPECT_EQ(look_after(milliseconds(0)), Names());
  other.beat();
  EXPECT_EQ(look_after(limit - milliseconds(1)), Names());
  other.beat();
  EXPECT_EQ(look_after(milliseconds(1)), Names({"worker 1"}));
  other.beat();
  EXPECT_EQ(look_after(milliseconds(1)), Names({"worker 1"}));
  heartbeat.beat();
  EXPECT_EQ(look_after(milliseconds(1)), Names());
}

TEST_F(HeartbeatsTest, ALoopThatHasNotBegunToBeatIsGivenTheLimitFromTheFirstLook) {
  now_ += std::chrono::hours(1);
  auto heartbeat = heartbeats_.add("scheduler");
  EXPECT_EQ(look_after(milliseconds(0)), Names());
  EXPECT_EQ(look_after(limit), Names({"scheduler"}));
}

TEST_F(HeartbeatsTest, ALoopThatEndedIsNotStalled) {
  std::optional<Heartbeat> heartbeat = heartbeats_.add("worker 1");
  EXPECT_EQ(look_after(milliseconds(0)), Names());
  heartbeat.reset();
  EXPECT_EQ(look_after(limit), Names());
}

TEST_F(HeartbeatsTest, AHeartbeatWithoutHeartbeatsMayBeat) {
  Heartbeat heartbeat = heartbeat_of(nullptr, "nobody");
  heartbeat.beat();
  EXPECT_EQ(look_after(limit), Names());
}

}  // namespace
}  // namespace conversed::model
