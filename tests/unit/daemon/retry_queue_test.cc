#include "daemon/turns/retry_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/turns/turn_worker.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using Queue = RetryQueue<std::string>;
constexpr Queue::Time start{};

TEST(RetryQueue, HasNoItemBeforeItIsDue) {
  Queue queue;
  EXPECT_FALSE(queue.next_due());
  queue.put("a", "late", start + 2ms);
  queue.put("a", "early", start + 1ms);
  EXPECT_EQ(queue.next_due(), start + 1ms);
  EXPECT_FALSE(queue.take(start));
  EXPECT_EQ(queue.take(start + 1ms), "early");
  EXPECT_FALSE(queue.take(start + 1ms));
  EXPECT_EQ(queue.next_due(), start + 2ms);
  EXPECT_EQ(queue.take(start + 2ms), "late");
  EXPECT_FALSE(queue.next_due());
}

TEST(RetryQueue, ManyItemsOfOneShareDelayAnotherShareByOneItem) {
  Queue queue;
  for (int i = 0; i < 1'000; ++i) queue.put("hostile", "hostile", start);
  queue.put("neighbour", "first", start + 1ms);
  queue.put("neighbour", "second", start + 1ms);
  const auto now = start + 2ms;
  std::vector<std::string> taken;
  for (int i = 0; i < 5; ++i) taken.push_back(*queue.take(now));
  EXPECT_EQ(taken, (std::vector<std::string>{"hostile", "first", "hostile", "second", "hostile"}));
  EXPECT_LE(*queue.next_due(), now);
}

TEST(RetryQueue, AShareThatComesBackWaitsForItsTurn) {
  Queue queue;
  queue.put("a", "a", start);
  queue.put("b", "b", start);
  EXPECT_EQ(queue.take(start), "a");
  queue.put("a", "a again", start);
  EXPECT_EQ(queue.take(start), "b");
  EXPECT_EQ(queue.take(start), "a again");
  EXPECT_FALSE(queue.take(start));
}

TEST(ConflictPauses, DoubleFromTheSecondConflictOn) {
  const std::vector<std::chrono::milliseconds> expected{0ms, 2ms, 4ms, 8ms, 16ms, 32ms, 50ms, 50ms};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(pause_after_conflicts(static_cast<int>(i) + 1), expected[i]);
  }
  EXPECT_EQ(pause_after_conflicts(1'000'000), 50ms);
}

}  // namespace
}  // namespace conversed::daemon
