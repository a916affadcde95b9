#include "daemon/data/move.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "daemon/data/storage.h"
#include "store/store.h"
#include "tests/support/manual_clock.h"
#include "tests/support/store_place.h"

namespace conversed::daemon {
namespace {

using model::Errc;

class MoveCommandTest : public testing::Test {
 protected:
  // Settings for a store on the first `servers` schemas; 0: in a file.
  config::Settings settings(std::size_t servers) const {
    config::Settings settings;
    settings.data_dir = places_[0].folder().path();
    if (servers == 0) return settings;
    settings.store.driver = config::StoreDriver::postgres;
    settings.store.postgres.url = config::Secret(places_[0].postgres()->url);
    for (std::size_t i = 1; i < servers; ++i) {
      settings.store.postgres.shards.emplace_back(places_[i].postgres()->url);
    }
    return settings;
  }
  model::Result<void> move(std::size_t servers, std::int32_t partition, std::size_t to) {
    return move_partition(settings(servers), {.partition = partition, .to = to}, clock_,
                          [&](std::string_view line) { lines_.emplace_back(line); });
  }

  const std::array<tests::StorePlace, 2> places_{};
  const tests::ManualClock clock_;
  std::vector<std::string> lines_;
};

TEST_F(MoveCommandTest, AStoreWithOneServerIsRefused) {
  for (const std::size_t servers : {0U, 1U}) {
    if (servers > 0 && !places_[0].in_postgres()) continue;
    EXPECT_EQ(describe_shards(settings(servers), clock_).error().code, Errc::conflict);
    const auto moved = move(servers, 0, 1);
    ASSERT_FALSE(moved);
    EXPECT_NE(moved.error().message.find("store.postgres.shards"), std::string::npos);
  }
}

TEST_F(MoveCommandTest, AStoreThatIsNotLaidOutIsRefused) {
  if (!places_[0].in_postgres()) GTEST_SKIP() << "CONVERSED_TEST_POSTGRES names no server";
  for (const auto& message :
       {describe_shards(settings(2), clock_).error().message, move(2, 0, 1).error().message}) {
    EXPECT_NE(message.find("start a daemon"), std::string::npos) << message;
  }
}

TEST_F(MoveCommandTest, ShowsThePlacesAndMovesAPartition) {
  if (!places_[0].in_postgres()) GTEST_SKIP() << "CONVERSED_TEST_POSTGRES names no server";
  {
    const auto store = store::Store::open(
        store_settings(settings(2), store::PostgresSettings::Place::shared), clock_);
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE((*store)->layout().settle(3));
  }
  EXPECT_EQ(*describe_shards(settings(2), clock_),
            "PARTITION  SHARD  MOVING TO\n"
            "0          0\n"
            "1          1\n"
            "2          0\n"
            "\n"
            "SHARD  PARTITIONS  SESSIONS\n"
            "0      2           0\n"
            "1      1           0\n");
  EXPECT_EQ(move(2, 3, 1).error().code, Errc::invalid_argument);
  EXPECT_EQ(move(2, 0, 2).error().code, Errc::invalid_argument);
  EXPECT_TRUE(lines_.empty());
  const auto moved = move(2, 0, 1);
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(lines_.size(), 6U);
  EXPECT_EQ(lines_.front(),
            "The daemons give up partition 0. Its events wait until the move is done.");
  EXPECT_EQ(move(2, 0, 1).error().code, Errc::conflict);
  const auto shown = describe_shards(settings(2), clock_);
  EXPECT_NE(shown->find("\n0          1\n"), std::string::npos) << *shown;
}

TEST_F(MoveCommandTest, AServerThatIsAwayIsNamedWithoutItsUrl) {
  if (!places_[0].in_postgres()) GTEST_SKIP() << "CONVERSED_TEST_POSTGRES names no server";
  auto away = settings(2);
  away.store.postgres.shards.front() =
      config::Secret("postgresql://somebody:topsecret@127.0.0.1:1/postgres");
  const auto shown = describe_shards(away, clock_);
  ASSERT_FALSE(shown);
  EXPECT_NE(shown.error().message.find("reachable"), std::string::npos);
  EXPECT_EQ(shown.error().message.find("topsecret"), std::string::npos);
}

}  // namespace
}  // namespace conversed::daemon
