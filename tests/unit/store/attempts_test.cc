// Counts of events in hand at crashes, and the runs that have taken partitions up.
#include "store/conversation/attempts.h"

#include <gtest/gtest.h>

#include <memory>

#include "store/store.h"
#include "tests/support/manual_clock.h"
#include "tests/support/store_place.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using Counted = std::vector<Attempts::Counted>;
using Windows = std::map<std::int32_t, Attempts::Window>;

class AttemptsTest : public testing::Test {
 protected:
  void SetUp() override { open(); }
  void open() {
    store_.reset();
    auto opened = Store::open(place_.store(), clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }
  Counted attribute(std::int64_t run, const std::vector<InHand>& events,
                    std::int64_t committed = 0) {
    const std::vector<model::Position> positions{{1, 0, committed}};
    auto counted = store_->first().attempts().attribute(run, events, positions);
    EXPECT_TRUE(counted);
    return counted.value_or(Counted{});
  }
  // Takes partitions up at these offsets. A run may have taken four more records of each.
  Attempts::TakenUp take_up(const std::string& run,
                            const std::map<std::int32_t, std::int64_t>& committed) {
    std::vector<Attempts::Taking> taking;
    for (const auto& [partition, offset] : committed) {
      taking.push_back({partition, offset, offset + 4});
    }
    auto taken = store_->first().attempts().take_up(run, taking);
    EXPECT_TRUE(taken);
    return taken.value_or(Attempts::TakenUp{});
  }
  Windows window(std::int32_t partition, std::int64_t below) {
    return {{partition, {.below = below, .since = clock_.now()}}};
  }
  void give_up(const std::string& run, const std::vector<std::int32_t>& partitions) {
    EXPECT_TRUE(store_->first().attempts().give_up(run, partitions));
  }

  tests::StorePlace place_;
  tests::ManualClock clock_;
  std::unique_ptr<Store> store_;
};

TEST_F(AttemptsTest, EachRunThatHadAnEventInHandCountsOnce) {
  EXPECT_EQ(attribute(1, {{"a", 0, 5}, {"b", 0, 6}}), (Counted{{"a", 0, 1}, {"b", 0, 1}}));
  EXPECT_EQ(attribute(1, {{"a", 0, 5}, {"b", 0, 6}}), (Counted{{"a", 0, 1}, {"b", 0, 1}}));
  open();
  EXPECT_EQ(attribute(1, {{"a", 0, 5}}), (Counted{{"a", 0, 1}, {"b", 0, 1}}));
  EXPECT_EQ(attribute(2, {{"a", 0, 5}}), (Counted{{"a", 0, 2}, {"b", 0, 1}}));
  EXPECT_EQ(attribute(0, {}), (Counted{{"a", 0, 2}, {"b", 0, 1}}));
  EXPECT_EQ(attribute(3, {{"a", 0, 5}}), (Counted{{"a", 0, 3}, {"b", 0, 1}}));
}

TEST_F(AttemptsTest, TheCommitOfAnEventForgetsItsCount) {
  (void)attribute(1, {{"a", 0, 5}, {"b", 0, 6}});
  auto commit = turn(key_of("s"), 0, 1);
  commit.attempts_settled = {"a", "never counted"};
  ASSERT_EQ(commit_now(store_->committer(), std::move(commit)), Outcome::committed);
  EXPECT_EQ(store_->first().attempts().counted(), (Counted{{"b", 0, 1}}));
}

TEST_F(AttemptsTest, CountsOfFinishedEventsAreForgottenUnlessTheyWaitInAnInbox) {
  auto commit = turn(key_of("s"), 0, 1);
  commit.inbox.added = {{"waits", "inject", "", "{}"}};
  ASSERT_EQ(commit_now(store_->committer(), std::move(commit)), Outcome::committed);
  EXPECT_EQ(attribute(1, {{"done", 0, 4}, {"gone", 0, -1}, {"in log", 0, 5}, {"waits", 0, 3}}, 5),
            (Counted{{"in log", 0, 1}, {"waits", 0, 1}}));
}

TEST_F(AttemptsTest, APartitionThatWasGivenUpHasNoWindow) {
  EXPECT_TRUE(take_up("a", {{0, 5}, {1, 5}}).windows.empty());
  give_up("a", {0});
  EXPECT_TRUE(take_up("b", {{0, 9}}).windows.empty());
  EXPECT_TRUE(take_up("a", {{1, 9}}).windows.empty()) << "the run takes over from itself";
  EXPECT_TRUE(store_->first().attempts().give_up_all("a"));
  const auto taken = take_up("b", {{1, 9}});
  EXPECT_TRUE(taken.windows.empty());
  EXPECT_FALSE(taken.crashed);
}

TEST_F(AttemptsTest, APartitionThatAnotherRunHasNotGivenUpHasAWindow) {
  (void)take_up("a", {{0, 5}, {1, 5}});
  const auto left = window(0, 13);
  auto taken = take_up("b", {{0, 9}});
  EXPECT_EQ(taken.windows, left);
  EXPECT_TRUE(taken.crashed);
  // Asks again, as after an unknown outcome.
  clock_.advance(std::chrono::seconds(1));
  taken = take_up("b", {{0, 10}});
  EXPECT_EQ(taken.windows, left);
  EXPECT_FALSE(taken.crashed);
  // The earlier run was only away. It can't give up a partition of another run.
  give_up("a", {0});
  EXPECT_EQ(take_up("c", {{0, 10}}).windows, window(0, 14));
}

TEST_F(AttemptsTest, AWindowStaysUntilAllBelowIsFinished) {
  (void)take_up("a", {{0, 5}});
  const auto left = window(0, 9);
  EXPECT_EQ(take_up("b", {{0, 5}}).windows, left);
  give_up("b", {0});
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(take_up("c", {{0, 8}}).windows, left);
  give_up("c", {0});
  EXPECT_TRUE(take_up("d", {{0, 9}}).windows.empty());
  give_up("d", {0});
  EXPECT_TRUE(take_up("e", {{0, 0}}).windows.empty());
}

TEST_F(AttemptsTest, CountsGoWithTheirPartitionFromRunToRun) {
  (void)take_up("a", {{0, 5}, {1, 5}});
  ASSERT_TRUE(store_->first().attempts().begin({"of 0", 0, 5}, 2));
  ASSERT_TRUE(store_->first().attempts().begin({"of 1", 1, 5}, 1));
  ASSERT_TRUE(store_->first().attempts().begin({"of 0", 0, 5}, 2))
      << "a repeat after an unknown outcome";
  EXPECT_EQ(take_up("b", {{0, 5}}).counted, (Counted{{"of 0", 0, 2}}));
  give_up("b", {0});
  EXPECT_EQ(take_up("c", {{0, 5}, {1, 6}}).counted, (Counted{{"of 0", 0, 2}}))
      << "the event of partition 1 is finished";
}

}  // namespace
}  // namespace conversed::store
