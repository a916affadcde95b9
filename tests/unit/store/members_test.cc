#include "store/accounts/members.h"

#include "store/sql/postgres.h"
#include "store/sql/sql.h"
#include "tests/unit/store/fixture.h"

// The members of a store, and the programs that it refuses.
namespace conversed::store {
namespace {

using model::Errc;
using model::Result;
using Place = PostgresSettings::Place;

ClusterMember member(const std::string& id) {
  return {.id = id,
          .run = model::new_id(),
          .roles = {"api", "scheduler"},
          .version = "1.2.3",
          .partitions = {0, 7}};
}

class MembersTest : public StoreTest {
 protected:
  std::vector<std::string> present() {
    std::vector<std::string> ids;
    const auto seen = beat(observer_);
    for (const auto& each : seen->members) {
      if (each.id != observer_.id) ids.push_back(each.id);
    }
    return ids;
  }
  // Makes the daemon's last sign of life older by `by`.
  void age(const std::string& id, std::chrono::milliseconds by) {
    place_.another_writer()->script("UPDATE daemons SET seen_at = seen_at - " +
                                    std::to_string(by.count()) + " WHERE id = '" + id + "'");
  }

  Result<Members::Present> beat(const ClusterMember& of) {
    return store_->members().beat(of, [] {});
  }

  const ClusterMember observer_ = member("observer");
};

TEST_F(MembersTest, AMemberIsListedWithItsReportUntilItLeaves) {
  auto a = member("a");
  ASSERT_TRUE(store_->members().join(a, "")->run.empty());
  ASSERT_TRUE(store_->members().join(member("b"), "")->run.empty());
  a.partitions = {3};
  const auto all = beat(a);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->members.size(), 2U);
  const ClusterMember& seen = all->members.front();
  EXPECT_EQ(seen.id, "a");
  EXPECT_EQ(seen.run, a.run);
  EXPECT_EQ(seen.roles, a.roles);
  EXPECT_EQ(seen.version, "1.2.3");
  EXPECT_EQ(seen.partitions, std::vector<std::int32_t>{3});
  EXPECT_LE(seen.started_at, seen.seen_at);
  EXPECT_LE(seen.seen_at, all->now);
  ASSERT_TRUE(store_->members().leave(a));
  EXPECT_EQ(present(), std::vector<std::string>{"b"});
}

TEST_F(MembersTest, ASilentMemberIsGoneAndComesBackWithItsNextBeat) {
  const auto a = member("a");
  ASSERT_TRUE(store_->members().join(a, "")->run.empty());
  age("a", member_lifetime);
  EXPECT_TRUE(present().empty());
  ASSERT_TRUE(beat(a));
  EXPECT_EQ(present(), std::vector<std::string>{"a"});
}

TEST_F(MembersTest, ANameBelongsToOneRunAtATime) {
  const auto first = member("a");
  const auto second = member("a");
  ASSERT_TRUE(store_->members().join(first, "")->run.empty());
  EXPECT_EQ(store_->members().join(second, "another")->run, first.run);
  EXPECT_TRUE(beat(first)) << "the refused join changes nothing";
  // The end of the first run is known at once, or shows after a while.
  ASSERT_TRUE(store_->members().join(second, first.run)->run.empty());
  EXPECT_EQ(beat(first).error().code, Errc::conflict);
  ASSERT_TRUE(store_->members().leave(first)) << "the first run is no member any more";
  EXPECT_EQ(present(), std::vector<std::string>{"a"});
  age("a", member_lifetime);
  EXPECT_TRUE(store_->members().join(first, "")->run.empty());
}

TEST_F(MembersTest, ACommandThatNeedsAllStoppedNamesTheRunningDaemons) {
  if (!place_.in_postgres()) GTEST_SKIP() << "a file has one daemon at most";
  ASSERT_TRUE(store_->members().join(member("machine-1"), "")->run.empty());
  const auto with = [&](Place place) {
    auto settings = *place_.postgres();
    settings.place = place;
    settings.turn_timeout = std::chrono::milliseconds(50);
    return settings;
  };
  auto first = open_postgres(with(Place::shared), Connection::Role::writer, nullptr);
  const auto second = open_postgres(with(Place::shared), Connection::Role::writer, nullptr);
  try {
    (void)open_postgres(with(Place::alone), Connection::Role::writer, nullptr);
    ADD_FAILURE() << "beside two daemons";
  } catch (const SqlError& error) {
    EXPECT_NE(std::string(error.what()).find("stop them first: machine-1"), std::string::npos)
        << error.what();
  }
  EXPECT_NO_THROW((void)open_postgres(with(Place::none), Connection::Role::writer, nullptr));
}

TEST_F(MembersTest, DaemonsWaitOutsideWhileACommandHasTheStoreAlone) {
  if (!place_.in_postgres()) GTEST_SKIP() << "a file has one daemon at most";
  auto settings = *place_.postgres();
  settings.turn_timeout = std::chrono::milliseconds(50);
  settings.place = Place::alone;
  auto command = open_postgres(settings, Connection::Role::writer, nullptr);
  settings.place = Place::shared;
  EXPECT_THROW((void)open_postgres(settings, Connection::Role::writer, nullptr), SqlError);
  command.reset();
  settings.turn_timeout = std::chrono::milliseconds(5'000);
  EXPECT_NO_THROW((void)open_postgres(settings, Connection::Role::writer, nullptr));
}

}  // namespace
}  // namespace conversed::store
