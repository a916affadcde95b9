// Lanes where others read partitions of the same log.
#include <thread>

#include "tests/unit/queue/held_runs.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

constexpr std::int32_t partitions = 8;

// The first key of that name that belongs into the partition.
std::string key_in(std::int32_t partition, const std::string& name = "key") {
  for (int n = 0;; ++n) {
    const auto key = name + std::to_string(n);
    if (partition_of(key, partitions) == partition) return key;
  }
}

LanesSettings shared() {
  LanesSettings settings;
  settings.partitions = partitions;
  return settings;
}

PartitionRange range(std::int32_t partition, std::int64_t end = 0, std::int64_t committed = 0) {
  return {partition, 1, 0, end, committed};
}

TEST(LanesOfPartitions, AKeyOfAnothersPartitionIsNotRun) {
  HeldRuns runs;
  Lanes lanes(shared(), runs.handler());
  const std::vector<PartitionRange> ours{range(1)};
  lanes.assign(ours);
  lanes.touch(key_in(0));
  lanes.touch(key_in(1));
  auto [run, finish] = runs.next();
  EXPECT_EQ(run.key, key_in(1));
  finish(Next::idle);
  EXPECT_TRUE(lanes.stop(1min));
  EXPECT_EQ(runs.seen(), 1U);
}

TEST(LanesOfPartitions, WhatIsTouchedByAnAssignmentRunsOnce) {
  HeldRuns runs;
  Lanes lanes(shared(), runs.handler());
  const std::vector<PartitionRange> ours{range(1)};
  lanes.assign(ours, {.one_by_one_below = {}, .touched = {key_in(1)}});
  auto [run, finish] = runs.next();
  EXPECT_EQ(run.key, key_in(1));
  EXPECT_TRUE(run.records.empty());
  EXPECT_FALSE(lanes.recovering());
  finish(Next::idle);
}

TEST(LanesOfPartitions, ARecoveryBeginsAgainWithAnAssignmentBehindTheRunsInHand) {
  HeldRuns runs;
  auto settings = shared();
  settings.workers = 4;
  Lanes lanes(settings, runs.handler());
  const std::vector<PartitionRange> first{range(1)};
  lanes.assign(first);
  EXPECT_FALSE(lanes.recovering());
  offer(lanes, record(0, key_in(1), 1));
  auto [before, finish_before] = runs.next();
  const std::vector<PartitionRange> left_behind{range(2, 2)};
  lanes.assign(left_behind, {.one_by_one_below = {{2, 2}}, .touched = {}});
  EXPECT_TRUE(lanes.recovering());
  offer(lanes, record(0, key_in(2, "a"), 2));
  offer(lanes, record(1, key_in(2, "b"), 2));
  EXPECT_EQ(runs.seen(), 1U);
  finish_before(Next::idle);
  for (std::size_t taken = 2; taken <= 3; ++taken) {
    EXPECT_TRUE(lanes.recovering());
    auto [run, finish] = runs.next();
    EXPECT_EQ(runs.seen(), taken);
    finish(Next::idle);
  }
  EXPECT_FALSE(lanes.recovering());
  // And a second time.
  const std::vector<PartitionRange> another{range(3, 1)};
  lanes.assign(another, {.one_by_one_below = {{3, 1}}, .touched = {}});
  EXPECT_TRUE(lanes.recovering());
  offer(lanes, record(0, key_in(3), 3));
  runs.next().second(Next::idle);
  EXPECT_FALSE(lanes.recovering());
}

TEST(LanesOfPartitions, InboxesOfALeftPartitionBelongToItsRecovery) {
  HeldRuns runs;
  Lanes lanes(shared(), runs.handler());
  // Nothing of the log is unfinished.
  const std::vector<PartitionRange> left_behind{range(2, 5, 5)};
  lanes.assign(left_behind, {.one_by_one_below = {{2, 5}}, .touched = {key_in(2)}});
  EXPECT_TRUE(lanes.recovering());
  runs.next().second(Next::again);
  EXPECT_TRUE(lanes.recovering());
  runs.next().second(Next::idle);
  EXPECT_FALSE(lanes.recovering());
}

TEST(LanesOfPartitions, ARecoveryDoesNotWaitForWhatHasGone) {
  HeldRuns runs;
  Lanes lanes(shared(), runs.handler());
  const std::vector<PartitionRange> left_behind{range(2, 5)};
  lanes.assign(left_behind, {.one_by_one_below = {{2, 5}}, .touched = {}});
  EXPECT_TRUE(lanes.recovering());
  const std::vector<std::int32_t> lost{2};
  EXPECT_TRUE(lanes.revoke(lost, 0ms).complete);
  EXPECT_FALSE(lanes.recovering());
  // Whoever had it meanwhile has recovered it.
  lanes.assign(left_behind);
  EXPECT_FALSE(lanes.recovering());
}

TEST(LanesOfPartitions, ARevocationWaitsForRunsWithoutRecordsToo) {
  HeldRuns runs;
  Lanes lanes(shared(), runs.handler());
  const std::vector<PartitionRange> ours{range(1), range(2)};
  lanes.assign(ours);
  lanes.touch(key_in(1));
  auto [run, finish] = runs.next();
  const std::vector<std::int32_t> lost{1};
  EXPECT_FALSE(lanes.revoke(lost, 0ms).complete);
  // It wants to go on, which is the next owner's to do.
  finish(Next::again);
  lanes.touch(key_in(2));
  auto [other, finish_other] = runs.next();
  EXPECT_EQ(other.key, key_in(2));
  finish_other(Next::idle);
  EXPECT_TRUE(lanes.stop(1min));
  EXPECT_EQ(runs.seen(), 2U);
}

TEST(LanesOfPartitions, ARevocationThatIsWaitedForIsComplete) {
  HeldRuns runs;
  Lanes lanes(shared(), runs.handler());
  const std::vector<PartitionRange> ours{range(1)};
  lanes.assign(ours);
  offer(lanes, record(0, key_in(1), 1));
  auto [run, finish] = runs.next();
  std::jthread ending([finish = std::move(finish)]() mutable { finish(Next::idle); });
  const std::vector<std::int32_t> lost{1};
  const auto revoked = lanes.revoke(lost, 1min);
  EXPECT_TRUE(revoked.complete);
  ASSERT_EQ(revoked.finished.size(), 1U);
  EXPECT_EQ(revoked.finished[0].offset, 0);
}

}  // namespace
}  // namespace conversed::queue
