#include "queue/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace conversed::queue {
namespace {

TEST(Progress, NothingMovesBeforeTheFirstRecordIsFinished) {
  Progress progress(0, 1);
  progress.take({1, 0, 0});
  progress.take({1, 0, 1});
  progress.finish(1);
  EXPECT_EQ(progress.lowest_unfinished(), 0);
  EXPECT_FALSE(progress.moved().has_value());
}

TEST(Progress, ReportsAMoveOnceAndAgainAfterForgetting) {
  Progress progress(7, 1);
  progress.take({1, 0, 7});
  progress.finish(7);
  EXPECT_EQ(progress.lowest_unfinished(), 8);
  EXPECT_EQ(progress.moved()->offset, 7);
  EXPECT_FALSE(progress.moved().has_value());
  progress.forget_reported();
  EXPECT_EQ(progress.moved()->offset, 7);
}

TEST(Progress, LowestUnfinishedIsRightInAnyOrderAndWithGaps) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Progress progress(0, 1);
  std::set<std::int64_t> open;
  std::int64_t next = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (open.empty() || random() % 2 == 0) {
      next += random() % 8 == 0 ? static_cast<std::int64_t>(random() % 5) : 0;
      progress.take({1, 0, next});
      open.insert(next++);
    } else {
      auto chosen = std::next(open.begin(), static_cast<std::ptrdiff_t>(random() % open.size()));
      progress.finish(*chosen);
      open.erase(chosen);
    }
    ASSERT_EQ(progress.lowest_unfinished(), open.empty() ? next : *open.begin());
  }
}

TEST(ProgressDeathTest, FinishingTwiceAborts) {
  Progress progress(0, 1);
  progress.take({1, 0, 0});
  progress.finish(0);
  EXPECT_DEATH(progress.finish(0), "");
}

}  // namespace
}  // namespace conversed::queue
