// Lanes beside other daemons that read partitions of the same log.
#include <thread>

#include "tests/unit/queue/held_runs.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

constexpr std::int32_t partitions = 8;

// The first key with that name in the partition.
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

TEST(LanesOfPartitions, AKeyTouchedByAnAssignmentRunsOnce) {
  HeldRuns runs;
  Lanes lanes(shared(), runs.handler());
  const std::vector<PartitionRange> ours{range(1)};
  lanes.assign(ours, {key_in(1)});
  auto [run, finish] = runs.next();
  EXPECT_EQ(run.key, key_in(1));
  EXPECT_TRUE(run.records.empty());
  finish(Next::idle);
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
  // The run asks for another one. The next owner has to run it.
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
