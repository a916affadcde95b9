#include "daemon/turns/lone_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "queue/lanes.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;

TEST(LoneRuns, ALoneRunBeginsOnceAllOthersHaveLeft) {
  LoneRuns runs;
  for (int n = 0; n < 3; ++n) runs.enter(nullptr);
  bool alone = false;
  runs.run_alone([&] { alone = true; });
  runs.leave();
  EXPECT_FALSE(alone);
  runs.leave();
  EXPECT_TRUE(alone);
  runs.leave();
}

TEST(LoneRuns, WhileOneRunsAloneNoneEnters) {
  LoneRuns runs;
  runs.enter(nullptr);
  std::promise<void> began;
  runs.run_alone([&] { began.set_value(); });
  began.get_future().get();
  std::atomic<bool> left{false};
  std::jthread other([&] {
    runs.enter(nullptr);
    EXPECT_TRUE(left.load());
    runs.leave();
  });
  left = true;
  runs.leave();
}

TEST(LoneRuns, LoneRunsGoOneAfterTheOtherAndBeforeThoseThatEnter) {
  LoneRuns runs;
  runs.enter(nullptr);
  runs.enter(nullptr);
  std::vector<int> order;
  runs.run_alone([&] { order.push_back(1); });
  runs.run_alone([&] { order.push_back(2); });
  EXPECT_EQ(order, std::vector<int>{1});
  runs.leave();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  runs.leave();
  runs.enter(nullptr);
  runs.leave();
}

TEST(LoneRuns, ATryToEnterDoesNotWait) {
  LoneRuns runs;
  EXPECT_TRUE(runs.try_enter());
  EXPECT_TRUE(runs.try_enter());
  bool alone = false;
  runs.run_alone([&] { alone = true; });
  EXPECT_FALSE(runs.try_enter()) << "a batch waits to run alone";
  runs.leave();
  EXPECT_TRUE(alone) << "a try that failed is not in hand";
  EXPECT_FALSE(runs.try_enter());
  runs.leave();
  EXPECT_TRUE(runs.try_enter());
  runs.leave();
}

TEST(LoneRuns, AStopDropsWaitingRunsAndLetsAllEnter) {
  LoneRuns runs;
  runs.enter(nullptr);
  runs.enter(nullptr);
  bool called = false;
  const auto held = std::make_shared<int>(1);
  runs.run_alone([&called, held] { called = true; });
  std::jthread entering([&] { runs.enter(nullptr); });
  runs.stop();
  entering.join();
  EXPECT_EQ(held.use_count(), 1);
  runs.run_alone([&called, held] { called = true; });
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_FALSE(called);
}

// A start after a crash with `count` records in the log. Some of them were in hand.
TEST(LoneRuns, OfAHundredThousandWaitingRecordsOnlyTheNotedOnesRunAlone) {
  constexpr std::int64_t count = 100'000;
  constexpr int workers = 4;
  const std::set<std::int64_t> noted{0, 50'000, 50'001, 99'999};
  LoneRuns runs;
  std::atomic<std::size_t> in_hand{0};
  std::atomic<std::size_t> alone{0};
  std::atomic<std::int64_t> ended{0};
  std::latch all_workers(workers);
  std::promise<void> done;
  const auto finished = [&] {
    if (++ended == count) done.set_value();
  };
  queue::LanesSettings settings;
  settings.workers = workers;
  settings.in_flight_limit = count;
  queue::Lanes lanes(settings, [&](queue::Run&& run, queue::Finish finish) {
    // Each worker waits once, so that all work side by side. It waits before it enters: a lone run
    // waits for those that have entered.
    thread_local bool has_waited = false;
    if (!std::exchange(has_waited, true)) all_workers.arrive_and_wait();
    runs.enter(nullptr);
    const auto offset = run.records.front().position.offset;
    if (!noted.contains(offset)) {
      ++in_hand;
      if (offset % 1'000 == 0) std::this_thread::yield();
      --in_hand;
      runs.leave();
      finish(queue::Next::idle);
      return finished();
    }
    auto last = std::make_shared<queue::Finish>(std::move(finish));
    runs.run_alone([&, last] {
      EXPECT_EQ(in_hand.load(), 0U);
      ++alone;
      runs.leave();
      (*last)(queue::Next::idle);
      finished();
    });
  });
  const std::vector<queue::PartitionRange> whole{{0, 1, 0, count, 0}};
  lanes.assign(whole);
  std::vector<queue::LogRecord> records;
  for (std::int64_t n = 0; n < count; ++n) {
    records.push_back({{"session " + std::to_string(n), "id", "inject", "", ""}, {1, 0, n}});
  }
  lanes.offer(std::move(records));
  done.get_future().get();
  EXPECT_EQ(alone.load(), noted.size());
}

}  // namespace
}  // namespace conversed::daemon
