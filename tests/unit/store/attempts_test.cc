// Which runs have taken up partitions, and what recovers what a crash has left of them.
#include <gtest/gtest.h>

#include <memory>

#include "store/store.h"
#include "tests/support/manual_clock.h"
#include "tests/support/store_place.h"

namespace conversed::store {
namespace {

class PartitionRunsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Store::open(place_.store(), clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }
  RecoveryMark mark(std::int32_t partition, std::int64_t offset, std::int64_t epoch = 1) {
    return {.since = clock_.now(), .below = {epoch, partition, offset}};
  }
  Attempts::TakenUp take_up(const std::string& run, const std::vector<RecoveryMark>& marks) {
    auto taken = store_->attempts().take_up(run, marks);
    EXPECT_TRUE(taken);
    return taken.value_or(Attempts::TakenUp{});
  }
  void give_up(const std::string& run, const std::vector<std::int32_t>& partitions) {
    EXPECT_TRUE(store_->attempts().give_up(run, partitions));
  }
  int begin(const std::string& event, std::int32_t partition) {
    return store_->attempts().begin(event, 0, partition, std::nullopt).value_or(-1);
  }

  tests::StorePlace place_;
  tests::ManualClock clock_;
  std::unique_ptr<Store> store_;
};

TEST_F(PartitionRunsTest, WhatWasGivenUpNeedsNoRecovery) {
  EXPECT_TRUE(take_up("a", {mark(0, 5), mark(1, 5)}).recovering.empty());
  give_up("a", {0});
  EXPECT_TRUE(take_up("b", {mark(0, 9)}).recovering.empty());
  EXPECT_TRUE(take_up("a", {mark(1, 9)}).recovering.empty()) << "it is its own";
  EXPECT_TRUE(store_->attempts().give_up_all("a"));
  EXPECT_TRUE(take_up("b", {mark(1, 9)}).recovering.empty());
}

TEST_F(PartitionRunsTest, WhatAnotherRunHasNotGivenUpIsRecovered) {
  (void)take_up("a", {mark(0, 5), mark(1, 5)});
  const auto now = mark(0, 9);
  EXPECT_EQ(take_up("b", {now}).recovering, std::vector{now});
  // Asked again, since nobody knew whether it was done.
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(take_up("b", {mark(0, 11)}).recovering, std::vector{now});
  // The one from before was only away: it takes nothing from whoever has it now.
  give_up("a", {0});
  EXPECT_TRUE(store_->attempts().recovered("a", std::vector<std::int32_t>{0}));
  EXPECT_EQ(take_up("c", {mark(0, 11)}).recovering, std::vector{now});
}

TEST_F(PartitionRunsTest, ARecoveryGoesOnWithWhoeverHasThePartition) {
  (void)take_up("a", {mark(0, 5)});
  const auto first = mark(0, 9);
  auto taken = take_up("b", {first});
  EXPECT_TRUE(taken.counted.empty());
  EXPECT_EQ(begin("event", 0), 1);
  give_up("b", {0});
  clock_.advance(std::chrono::seconds(1));
  taken = take_up("c", {mark(0, 20)});
  EXPECT_EQ(taken.recovering, std::vector{first});
  EXPECT_EQ(taken.counted, std::set<std::int32_t>{0});
  EXPECT_EQ(begin("event", 0), 2);
  EXPECT_TRUE(store_->attempts().recovered("c", std::vector<std::int32_t>{0}));
  give_up("c", {0});
  EXPECT_TRUE(take_up("d", {mark(0, 20)}).recovering.empty());
  EXPECT_FALSE(store_->attempts().recorded()->counts);
}

TEST_F(PartitionRunsTest, EachPartitionHasItsOwnRecord) {
  (void)take_up("a", {mark(0, 5), mark(1, 5)});
  (void)take_up("b", {mark(0, 5)});
  EXPECT_EQ(begin("of 0", 0), 1);
  EXPECT_EQ(begin("of 1", 1), 1);  // which nobody recovers yet: it is not kept
  (void)take_up("c", {mark(1, 5)});
  EXPECT_EQ(begin("of 1", 1), 1);
  EXPECT_TRUE(store_->attempts().recovered("b", std::vector<std::int32_t>{0}));
  EXPECT_EQ(begin("of 1", 1), 2);
  const auto taken = take_up("d", {mark(0, 7), mark(1, 7)});
  ASSERT_EQ(taken.recovering.size(), 2U);
  EXPECT_EQ(taken.recovering[0].below.offset, 7);
  EXPECT_EQ(taken.recovering[1].below.offset, 5);
  EXPECT_EQ(taken.counted, std::set<std::int32_t>{1});
}

TEST_F(PartitionRunsTest, AnotherEpochGetsANewMark) {
  (void)take_up("a", {mark(0, 5)});
  (void)take_up("b", {mark(0, 9)});
  const auto newer = mark(0, 3, 2);
  EXPECT_EQ(take_up("c", {newer}).recovering, std::vector{newer});
}

}  // namespace
}  // namespace conversed::store
