// The Committer with bad values and a failing disk.
#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>

#include "store/commit/row_writes.h"
#include "store/conversation/attempts.h"
#include "store/sql/database.h"
#include "store/sql/sql.h"
#include "store/sql/sqlite.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

// A Committer over its own database, so that tests reach the connection.
class FailureTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Database::open(place_.hasty_database());
    ASSERT_TRUE(opened);
    database_ = *std::move(opened);
    committer_ =
        std::make_unique<Committer>(*database_, clock_,
                                    CommitterSettings{.min_backoff = std::chrono::milliseconds(1),
                                                      .max_backoff = std::chrono::milliseconds(2)});
  }

  void submit(SessionCommit commit) {
    committer_->submit(std::move(commit), [this](Outcome outcome, const auto&) {
      const std::lock_guard lock(mutex_);
      outcomes_.push_back(outcome);
      changed_.notify_all();
    });
  }
  std::vector<Outcome> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return outcomes_.size() >= count; });
    return outcomes_;
  }

  // Defers the check of foreign keys until the COMMIT.
  void defer_foreign_keys(Writer& writer) const {
    writer.connection().script(
        place_.in_postgres() ? "ALTER TABLE deliveries ALTER CONSTRAINT deliveries_session_fkey"
                               " DEFERRABLE INITIALLY DEFERRED"
                             : "PRAGMA defer_foreign_keys=ON");
  }

  const StorePlace place_;
  ManualClock clock_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Committer> committer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Outcome> outcomes_;
};

TEST_F(FailureTest, PoisonAmongAHundredIsFoundAndAllOthersCommit) {
  for (int i = 0; i < 100; ++i) {
    auto commit = turn(key_of("user" + std::to_string(i)), 0, i);
    if (i == 37) commit.outputs.push_back(commit.outputs.front());  // the same number twice
    submit(std::move(commit));
  }
  committer_->start();
  const auto outcomes = wait_for(100);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(outcomes[i], i == 37 ? Outcome::poison : Outcome::committed) << i;
  }
  Sessions sessions(*database_, *committer_);
  EXPECT_FALSE(sessions.load(key_of("user37"))->has_value());
  EXPECT_EQ(sessions.load(key_of("user99"))->value().version, 1);
  EXPECT_TRUE(committer_->healthy());
}

TEST_F(FailureTest, WriteThatTheCommitRefusesIsFoundToo) {
  std::promise<model::Result<void>> promise;
  submit(turn(key_of("ann"), 0, 1));
  committer_->write(
      [this](Writer& writer) -> model::Result<void> {
        defer_foreign_keys(writer);
        insert_delivery(writer.connection(), 999, "endpoint", 1, "output", false);
        return {};
      },
      [&](model::Result<void> result) { promise.set_value(std::move(result)); });
  submit(turn(key_of("bob"), 0, 2));
  committer_->start();
  EXPECT_EQ(wait_for(2), (std::vector{Outcome::committed, Outcome::committed}));
  EXPECT_EQ(promise.get_future().get().error().code, model::Errc::conflict);
  EXPECT_TRUE(committer_->healthy());
}

TEST_F(FailureTest, FullDiskHealsAndLosesNothing) {
  if (place_.in_postgres()) GTEST_SKIP() << "a server's disk is not ours to fill";
  std::vector<bool> health;
  std::size_t called_back_while_full = 0;
  committer_->on_health([&](bool healthy) {
    health.push_back(healthy);
    if (healthy) return;
    EXPECT_EQ(committer_->last_failure(), "database error 13 (database or disk is full)");
    {
      const std::lock_guard lock(mutex_);
      called_back_while_full = outcomes_.size();
    }
    database_->writer().script("PRAGMA max_page_count=1000000");  // makes room
  });
  const auto pages = *database_->writer().value<std::int64_t>("PRAGMA page_count");
  database_->writer().script("PRAGMA max_page_count=" + std::to_string(pages + 2));
  for (int i = 0; i < 50; ++i) {
    auto commit = turn(key_of("user" + std::to_string(i)), 0, i);
    commit.after.context["filler"] = std::string(10'000, 'x');
    submit(std::move(commit));
  }
  committer_->start();
  for (const auto outcome : wait_for(50)) EXPECT_EQ(outcome, Outcome::committed);
  EXPECT_EQ(health, (std::vector{false, true}));
  EXPECT_EQ(called_back_while_full, 0U);
  Sessions sessions(*database_, *committer_);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(sessions.load(key_of("user" + std::to_string(i)))->value().version, 1);
  }
}

TEST_F(FailureTest, OnCommitRunsOnceHoweverOftenTheCommitIsTried) {
  std::atomic<int> tries{0};
  std::atomic<int> told{0};
  std::promise<model::Result<void>> refused;
  std::promise<model::Result<void>> taken;
  committer_->write(
      [&](Writer& writer) -> model::Result<void> {
        writer.on_commit([&] { ++told; });
        defer_foreign_keys(writer);  // the COMMIT fails, so the batch is tried in parts
        insert_delivery(writer.connection(), 999, "endpoint", 1, "output", false);
        ++tries;
        return {};
      },
      [&](model::Result<void> result) { refused.set_value(std::move(result)); });
  committer_->write(
      [&](Writer& writer) -> model::Result<void> {
        writer.on_commit([&] { ++told; });
        ++tries;
        return {};
      },
      [&](model::Result<void> result) { taken.set_value(std::move(result)); });
  committer_->start();
  EXPECT_EQ(refused.get_future().get().error().code, model::Errc::conflict);
  EXPECT_TRUE(taken.get_future().get());
  EXPECT_EQ(tries, 4);
  EXPECT_EQ(told, 1);
}

TEST_F(FailureTest, LockedDatabaseIsWaitedForAndIsNoConflict) {
  std::latch unhealthy(1);
  committer_->on_health([&](bool healthy) {
    if (!healthy) unhealthy.count_down();
  });
  auto other = place_.another_writer();
  other->begin();
  other->settle();
  committer_->start();
  submit(turn(key_of("ann"), 0, 1));
  unhealthy.wait();
  EXPECT_FALSE(committer_->healthy());
  other->rollback();
  EXPECT_EQ(wait_for(1), std::vector{Outcome::committed});
  EXPECT_TRUE(committer_->healthy());
}

TEST_F(FailureTest, StopWithoutStartRefusesWaitingWrites) {
  std::promise<model::Result<void>> promise;
  committer_->write([](Writer&) -> model::Result<void> { return {}; },
                    [&](model::Result<void> result) { promise.set_value(std::move(result)); });
  committer_->stop();
  EXPECT_EQ(promise.get_future().get().error().code, model::Errc::unavailable);
}

TEST_F(FailureTest, WithoutRetriesAFailingStoreIsReportedAtOnce) {
  auto other = place_.another_writer();
  other->begin();
  other->settle();
  committer_->start();
  std::promise<model::Result<void>> promise;
  committer_->write([](Writer&) -> model::Result<void> { return {}; },
                    [&](model::Result<void> result) { promise.set_value(std::move(result)); });
  committer_->stop_retrying();
  EXPECT_EQ(promise.get_future().get().error().code, model::Errc::unavailable);
  other->rollback();
  submit(turn(key_of("ann"), 0, 1));
  EXPECT_EQ(wait_for(1), std::vector{Outcome::committed});
}

TEST_F(FailureTest, AnImpatientWriteFailsFastAndHasNoEffect) {
  std::latch healed(1);
  committer_->on_health([&](bool healthy) {
    if (healthy) healed.count_down();
  });
  auto other = place_.another_writer();
  other->begin();
  other->settle();
  committer_->start();
  const auto write = [this](const std::string& name) {
    return committer_->write_and_wait([&](Writer& writer) -> model::Result<void> {
      writer.connection().run("INSERT INTO meta (name, value) VALUES (:n, 1)", name);
      return {};
    });
  };
  const auto told = write("first");
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, model::Errc::unavailable);
  EXPECT_FALSE(committer_->healthy());
  EXPECT_EQ(write("second").error().code, model::Errc::unavailable);
  other->rollback();
  healed.wait();  // although no write is left
  EXPECT_TRUE(write("third"));
  EXPECT_EQ(other->value<std::int64_t>("SELECT COUNT(*) FROM meta WHERE name IN"
                                       " ('first', 'second', 'third')"),
            1);
}

TEST_F(FailureTest, AnAttemptFailsFastWithTheStoreAndIsCountedOnce) {
  std::latch healed(1);
  committer_->on_health([&](bool healthy) {
    if (healthy) healed.count_down();
  });
  committer_->start();
  Attempts attempts(*database_, *committer_);
  auto other = place_.another_writer();
  other->begin();
  other->settle();
  ASSERT_EQ(attempts.begin({"e", 0, 1}, 2).error().code, model::Errc::unavailable);
  // Makes the count durable, as if the COMMIT had reported an error although it worked.
  other->run(
      "INSERT INTO attempts (event_id, count, log_partition, log_offset) VALUES ('e', 2, 0, 1)");
  other->commit();
  healed.wait();
  EXPECT_TRUE(attempts.begin({"e", 0, 1}, 2));
  ASSERT_EQ(attempts.counted()->size(), 1U);
  EXPECT_EQ(attempts.counted()->front().count, 2);
}

TEST(SqliteError, OnlyErrorsThatWroteNothingAreCertain) {
  // SQLite's result codes.
  constexpr int busy = 5;
  constexpr int full = 13;
  constexpr int sync_failed = 1034;
  EXPECT_FALSE(SqliteError(busy).uncertain());
  EXPECT_FALSE(SqliteError(full).uncertain());
  EXPECT_TRUE(SqliteError(sync_failed).uncertain());
}

TEST_F(FailureTest, EachWriteHasItsOwnPatience) {
  std::latch unhealthy(1);
  committer_->on_health([&](bool healthy) {
    if (!healthy) unhealthy.count_down();
  });
  auto other = place_.another_writer();
  other->begin();
  other->settle();
  submit(turn(key_of("ann"), 0, 1));
  const auto nothing = [](Writer&) -> model::Result<void> { return {}; };
  auto patient = std::async(std::launch::async, [&] {
    return committer_->write_and_wait(nothing, Committer::Patience::until_it_works);
  });
  committer_->start();
  unhealthy.wait();
  EXPECT_EQ(committer_->write_and_wait(nothing).error().code, model::Errc::unavailable);
  other->rollback();
  EXPECT_TRUE(patient.get());
  EXPECT_EQ(wait_for(1), std::vector{Outcome::committed});
}

TEST_F(FailureTest, StopInterruptsTheRetriesWithoutCallbacks) {
  std::latch unhealthy(1);
  committer_->on_health([&](bool healthy) {
    if (!healthy) unhealthy.count_down();
  });
  auto other = place_.another_writer();
  other->begin();
  other->settle();
  committer_->start();
  submit(turn(key_of("ann"), 0, 1));
  unhealthy.wait();
  committer_->stop();
  EXPECT_TRUE(outcomes_.empty());
  other->rollback();
}

}  // namespace
}  // namespace conversed::store
