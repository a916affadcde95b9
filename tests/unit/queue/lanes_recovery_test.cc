// Lanes after an unclean stop: one by one, and in which order.
#include <algorithm>
#include <set>

#include "tests/unit/queue/held_runs.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

TEST(Lanes, WhileRecoveringOneRecordIsInHandAtATime) {
  HeldRuns runs;
  LanesSettings settings;
  settings.workers = 4;
  settings.one_by_one_below = {{0, 3}};
  Lanes lanes(settings, runs.handler());
  lanes.assign(from_zero());
  std::vector<LogRecord> records;
  for (std::int64_t n = 0; n < 3; ++n) records.push_back(record(n, n == 1 ? "b" : "a"));
  for (std::int64_t n = 3; n < 6; ++n) records.push_back(record(n, "c" + std::to_string(n)));
  lanes.offer(std::move(records));
  std::set<std::int64_t> below{0, 1, 2};
  std::size_t taken = 0;
  while (lanes.recovering()) {
    auto [run, finish] = runs.next();
    ASSERT_EQ(run.records.size(), 1U);
    // Whatever the workers do, none of them holds another run.
    EXPECT_EQ(runs.seen(), ++taken);
    below.erase(run.records[0].position.offset);
    finish(Next::idle);
  }
  EXPECT_TRUE(below.empty());
  while (taken < 6) {
    runs.next().second(Next::idle);
    ++taken;
  }
}

TEST(Lanes, WhatIsTouchedBelongsToTheRecoveryUntilItRests) {
  HeldRuns runs;
  LanesSettings settings;
  settings.workers = 4;
  settings.one_by_one_below = {{0, 0}};
  Lanes lanes(settings, runs.handler());
  lanes.touch("a");
  lanes.touch("b");
  lanes.assign(from_zero());
  offer(lanes, record(0, "a"));
  offer(lanes, record(1, "c"));
  std::size_t taken = 0;
  std::size_t of_a = 0;
  while (lanes.recovering()) {
    auto [run, finish] = runs.next();
    EXPECT_EQ(runs.seen(), ++taken);
    // Its records wait until what it was touched for is done, and so do other keys.
    EXPECT_TRUE(run.records.empty());
    EXPECT_NE(run.key, "c");
    if (run.key == "a") ++of_a;
    finish(run.key == "a" && of_a < 3 ? Next::again : Next::idle);
  }
  EXPECT_EQ(of_a, 3U);
  for (int n = 0; n < 2; ++n) {
    auto [run, finish] = runs.next();
    EXPECT_EQ(run.records.size(), 1U);
    finish(run.key == "a" ? Next::again : Next::idle);
  }
  EXPECT_FALSE(lanes.recovering());
  runs.next().second(Next::idle);
}

TEST(Lanes, WhatGoesOnBehindARecordOfTheRecoveryBelongsToIt) {
  HeldRuns runs;
  LanesSettings settings;
  settings.one_by_one_below = {{0, 1}};
  Lanes lanes(settings, runs.handler());
  lanes.assign(from_zero());
  offer(lanes, record(0, "a"));
  runs.next().second(Next::again);
  EXPECT_TRUE(lanes.recovering());
  // A newer record that goes on is not waited for: under load there would be no end.
  offer(lanes, record(1, "b"));
  runs.next().second(Next::idle);
  EXPECT_FALSE(lanes.recovering());
  runs.next().second(Next::again);
  EXPECT_FALSE(lanes.recovering());
  runs.next().second(Next::idle);
}

// The keys in the order of their runs, `count` of them.
std::vector<std::string> keys_of(HeldRuns& runs, std::size_t count) {
  std::vector<std::string> keys;
  while (keys.size() < count) {
    auto [run, finish] = runs.next();
    keys.push_back(run.key);
    finish(Next::idle);
  }
  return keys;
}

TEST(Lanes, WhatTheRecoveryWaitsForGoesBeforeNewerRecords) {
  HeldRuns runs;
  LanesSettings settings;
  settings.workers = 4;
  settings.one_by_one_below = {{0, 5}, {1, 1}};
  Lanes lanes(settings, runs.handler());
  lanes.assign(from_zero(2));
  std::vector<LogRecord> records;
  for (std::int64_t n = 0; n < 5; ++n) records.push_back(record(n, n == 1 ? "b" : "a"));
  for (std::int64_t n = 5; n < 9; ++n) records.push_back(record(n, "new" + std::to_string(n)));
  records.push_back(record(9, "b"));
  records.push_back(record(0, "c", 1));
  lanes.offer(std::move(records));
  // Four records of one lane and one of each other, however many newer ones are ready as well.
  auto keys = keys_of(runs, 6);
  std::ranges::sort(keys);
  EXPECT_EQ(keys, (std::vector<std::string>{"a", "a", "a", "a", "b", "c"}));
  EXPECT_FALSE(lanes.recovering());
  keys = keys_of(runs, 5);
  std::ranges::sort(keys);
  EXPECT_EQ(keys, (std::vector<std::string>{"b", "new5", "new6", "new7", "new8"}));
}

TEST(Lanes, ATouchedKeyThatWasReadyComesForwardInARecovery) {
  HeldRuns runs;
  LanesSettings settings;
  settings.one_by_one_below = {{0, 2}};
  Lanes lanes(settings, runs.handler());
  lanes.assign(from_zero());
  offer(lanes, record(0, "a"));
  auto [held, finish_held] = runs.next();
  for (std::int64_t n = 2; n < 5; ++n) offer(lanes, record(n, "new" + std::to_string(n)));
  lanes.touch("new4");
  finish_held(Next::idle);
  auto [touched, finish_touched] = runs.next();
  EXPECT_EQ(touched.key, "new4");
  EXPECT_TRUE(touched.records.empty());
  finish_touched(Next::idle);
  auto others = keys_of(runs, 3);
  std::ranges::sort(others);  // several workers take them
  EXPECT_EQ(others, (std::vector<std::string>{"new2", "new3", "new4"}));
}

TEST(Lanes, WhileTheRecoveryWaitsForWhatIsNotThereOthersGoOn) {
  HeldRuns runs;
  LanesSettings settings;
  settings.one_by_one_below = {{0, 1}, {1, 1}};
  Lanes lanes(settings, runs.handler());
  lanes.assign(from_zero(2));
  offer(lanes, record(0, "a", 0));
  offer(lanes, record(1, "b", 0));
  // Its lane stands still from here on.
  runs.next().second(Next::abandoned);
  EXPECT_EQ(keys_of(runs, 1), std::vector<std::string>{"b"});
  EXPECT_TRUE(lanes.recovering());
  // What it waits for in the other partition has not come yet.
  offer(lanes, record(2, "c", 0));
  EXPECT_EQ(keys_of(runs, 1), std::vector<std::string>{"c"});
  offer(lanes, record(0, "d", 1));
  EXPECT_EQ(keys_of(runs, 1), std::vector<std::string>{"d"});
  EXPECT_TRUE(lanes.recovering());
}

TEST(Lanes, ARecoveryThatIsOverStaysSo) {
  HeldRuns runs;
  LanesSettings settings;
  settings.one_by_one_below = {{0, 1}, {1, 1}};
  Lanes lanes(settings, runs.handler());
  lanes.assign(from_zero(1));
  offer(lanes, record(0, "a"));
  runs.next().second(Next::idle);
  EXPECT_FALSE(lanes.recovering());
  offer(lanes, record(1, "a"));
  auto [run, finish] = runs.next();
  const std::vector<PartitionRange> late{{1, 1, 0, 1, 0}};
  lanes.assign(late);
  EXPECT_FALSE(lanes.recovering());
  finish(Next::idle);
}

TEST(Lanes, AStopInTheMiddleOfARecoveryLeavesItUnfinished) {
  HeldRuns runs;
  LanesSettings settings;
  settings.one_by_one_below = {{0, 0}};
  Lanes lanes(settings, runs.handler());
  lanes.touch("a");
  lanes.touch("b");
  lanes.assign(from_zero());
  auto [run, finish] = runs.next();
  EXPECT_FALSE(lanes.stop(0ms));
  finish(Next::again);
  EXPECT_TRUE(lanes.stop(0ms));
  EXPECT_TRUE(lanes.recovering());
}

TEST(Lanes, WithNothingBelowTheOffsetsThereIsNoRecovery) {
  HeldRuns runs;
  LanesSettings settings;
  settings.one_by_one_below = {{0, 3}};
  Lanes lanes(settings, runs.handler());
  EXPECT_TRUE(lanes.recovering());
  const std::vector<PartitionRange> ranges{{0, 1, 0, 3, 3}};
  lanes.assign(ranges);
  EXPECT_FALSE(lanes.recovering());
}

}  // namespace
}  // namespace conversed::queue
