#include "queue/sqlite/sqlite_log.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <iterator>
#include <optional>
#include <thread>

#include "tests/support/manual_clock.h"
#include "tests/support/temp_folder.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

class IgnoringListener final : public Listener {
 public:
  Result<void> on_assigned(std::span<const PartitionRange> /*partitions*/) override { return {}; }
  void on_revoked(std::span<const std::int32_t> /*partitions*/) override {}
};

class SqliteLogTest : public testing::Test {
 protected:
  void SetUp() override { settings_.path = folder_ / "log.db"; }

  void open() {
    log_.reset();
    auto log = SqliteLog::open(settings_, clock_);
    ASSERT_TRUE(log.has_value()) << log.error().message;
    log_ = std::move(*log);
  }

  Result<Appended> append(std::string id, std::string value = "v") {
    std::promise<Result<Appended>> done;
    log_->append(Record{"key", std::move(id), "inject", "", std::move(value)},
                 [&](Result<Appended> outcome) { done.set_value(std::move(outcome)); });
    return done.get_future().get();
  }

  Result<KeyedAppended> append_keyed(std::string id, AppendKey key) {
    std::promise<Result<KeyedAppended>> done;
    log_->append(Record{"key", std::move(id), "inject", "", "v"}, std::move(key),
                 [&](Result<KeyedAppended> outcome) { done.set_value(std::move(outcome)); });
    return done.get_future().get();
  }

  Result<std::optional<KeyedAppended>> look_up(const AppendKey& key) {
    Result<std::optional<KeyedAppended>> found;
    log_->look_up(key, [&](auto answer) { found = std::move(answer); });
    return found;
  }

  static AppendKey key(std::string name, std::uint8_t body) {
    AppendKey key{"org/inject", std::move(name), {}, {}};
    key.body_hash.fill(body);
    return key;
  }

  // Reads and commits all records.
  void finish_all() {
    auto consumer = log_->subscribe(listener_);
    ASSERT_TRUE(consumer.has_value());
    for (;;) {
      const auto records = (*consumer)->poll(1'000, 0ms);
      ASSERT_TRUE(records.has_value());
      if (records->empty()) return;
      const std::vector<Position> last{records->back().position};
      ASSERT_TRUE((*consumer)->commit(last).has_value());
    }
  }

  PartitionRange range() { return log_->ranges().value().front(); }

  Result<std::int64_t> unfinished(const std::vector<KeyRange>& keys) {
    return log_->unfinished(keys);
  }

  // True if the log's file or a file beside it has the text.
  bool in_files(const std::string& text) {
    bool found = false;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file),
                              std::istreambuf_iterator<char>()};
      found = found || bytes.find(text) != std::string::npos;
    }
    return found;
  }

  // The first value of the result. May write only while the log is closed.
  std::int64_t query(const std::string& sql) {
    sqlite3* db = nullptr;
    const int flags = log_ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    EXPECT_EQ(sqlite3_open_v2(settings_.path.c_str(), &db, flags, nullptr), 0);
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const std::int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
  }

  tests::TempFolder folder_;
  SqliteLogSettings settings_;
  tests::ManualClock clock_;
  IgnoringListener listener_;
  std::unique_ptr<SqliteLog> log_;
};

TEST_F(SqliteLogTest, CallbacksComeInTheOrderOfTheAppends) {
  open();
  std::vector<std::int64_t> offsets;
  for (int n = 0; n < 5'000; ++n) {
    log_->append(Record{"key", std::to_string(n), "", "", ""},
                 [&](Result<Appended> outcome) { offsets.push_back(outcome->position.offset); });
  }
  log_->stop();
  ASSERT_EQ(offsets.size(), 5'000U);
  for (std::size_t at = 0; at < offsets.size(); ++at) {
    ASSERT_EQ(offsets[at], static_cast<std::int64_t>(at));
  }
}

TEST_F(SqliteLogTest, AFullBufferRefusesAtOnceAndTakesMoreLater) {
  settings_.max_waiting_records = 2;
  open();
  // The first callback holds the log's thread, so that later appends have to wait.
  std::promise<void> entered;
  std::promise<void> release;
  log_->append(Record{"key", "0", "", "", ""}, [&](const Result<Appended>&) {
    entered.set_value();
    release.get_future().wait();
  });
  entered.get_future().wait();
  std::promise<void> both;
  std::atomic<int> appended = 0;
  int refused = 0;
  for (int n = 1; n <= 5; ++n) {
    log_->append(Record{"key", std::to_string(n), "", "", ""},
                 [&](const Result<Appended>& outcome) {
                   if (!outcome) {
                     EXPECT_EQ(outcome.error().code, Errc::too_many);
                     ++refused;
                   } else if (++appended == 2) {
                     both.set_value();
                   }
                 });
  }
  EXPECT_EQ(refused, 3);
  release.set_value();
  both.get_future().wait();
  EXPECT_TRUE(append("6").has_value());
}

TEST_F(SqliteLogTest, ARecordAboveTheLimitIsRefused) {
  settings_.max_record_bytes = 1'000;
  open();
  EXPECT_EQ(append("a", std::string(1'001, 'x')).error().code, Errc::too_large);
  EXPECT_TRUE(append("b", std::string(900, 'x')).has_value());
}

TEST_F(SqliteLogTest, PruningDeletesFinishedRecordsOnly) {
  settings_.prune_after_records = 10;
  open();
  for (int n = 0; n < 100; ++n) ASSERT_TRUE(append(std::to_string(n)).has_value());
  {
    auto consumer = log_->subscribe(listener_);
    const auto records = (*consumer)->poll(60, 0ms).value();
    ASSERT_EQ(records.size(), 60U);
    const std::vector<Position> last{records.back().position};
    ASSERT_TRUE((*consumer)->commit(last).has_value());
  }
  ASSERT_TRUE(append("100").has_value());  // this transaction prunes
  EXPECT_EQ(range().first, 60);
  EXPECT_EQ(range().committed, 60);
  EXPECT_EQ(query("SELECT count(*) FROM record"), 41);
  EXPECT_EQ(query("SELECT min(at) FROM record"), 60);
}

TEST_F(SqliteLogTest, HeldPruningKeepsFinishedRecordsAndRewindDeliversThemAgain) {
  settings_.prune_after_records = 1;
  open();
  log_->set_pruning(Pruning::held);
  for (int n = 0; n < 20; ++n) ASSERT_TRUE(append(std::to_string(n)).has_value());
  finish_all();
  ASSERT_TRUE(append("20").has_value());
  EXPECT_EQ(range().first, 0);
  EXPECT_EQ(log_->rewind({0, 0}).error().code, Errc::invalid_argument);
  ASSERT_TRUE(log_->rewind({99}).has_value());
  EXPECT_EQ(range().committed, 20) << "a rewind only goes back";
  ASSERT_TRUE(log_->rewind({7}).has_value());
  auto consumer = log_->subscribe(listener_);
  EXPECT_EQ((*consumer)->poll(100, 0ms).value().size(), 14U);
  EXPECT_EQ(log_->rewind({0}).error().code, Errc::conflict);
}

TEST_F(SqliteLogTest, OffsetsAreNotUsedAgainWhenEverythingWasPruned) {
  settings_.prune_after_records = 1;
  open();
  for (int n = 0; n < 10; ++n) ASSERT_TRUE(append(std::to_string(n)).has_value());
  finish_all();
  // The commit's own transaction has pruned the records. No record is left to give the next offset.
  ASSERT_EQ(query("SELECT count(*) FROM record"), 0);
  open();
  EXPECT_EQ(range().end, 10);
  EXPECT_EQ(append("10")->position.offset, 10);
}

TEST_F(SqliteLogTest, ThereIsOneConsumerAtATime) {
  open();
  {
    auto first = log_->subscribe(listener_);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(log_->subscribe(listener_).error().code, Errc::conflict);
  }
  EXPECT_TRUE(log_->subscribe(listener_).has_value());
}

TEST_F(SqliteLogTest, ASlowConsumerReadsTheFileAndThenCatchesUpWithTheTail) {
  settings_.max_tail_records = 16;
  open();
  auto consumer = log_->subscribe(listener_);
  std::jthread appender([this] {
    for (int n = 0; n < 3'000; ++n) {
      log_->append(Record{"key", std::to_string(n), "", "", ""},
                   [](const Result<Appended>& outcome) { EXPECT_TRUE(outcome.has_value()); });
    }
  });
  std::int64_t expected = 0;
  while (expected < 3'000) {
    const auto some = (*consumer)->poll(7, 10s).value();
    for (const auto& each : some) {
      ASSERT_EQ(each.position.offset, expected);
      ASSERT_EQ(each.record.id, std::to_string(expected));
      ++expected;
    }
  }
}

TEST_F(SqliteLogTest, AFullFileRefusesAndHealsOnceRecordsAreFinished) {
  settings_.max_file_bytes = 400'000;
  settings_.prune_after_records = 1'000'000;
  open();
  const std::string value(10'000, 'x');
  int appended = 0;
  Result<Appended> outcome = append("0", value);
  while (outcome) outcome = append(std::to_string(++appended), value);
  EXPECT_EQ(outcome.error().code, Errc::unavailable);
  EXPECT_FALSE(log_->health().has_value());
  EXPECT_EQ(range().end, appended);
  // No record is finished, so the file stays full. Its records stay readable.
  EXPECT_EQ(append("again", value).error().code, Errc::unavailable);
  finish_all();
  // A commit and the log's own attempts make room. No restart is needed.
  EXPECT_TRUE(append("healed", value).has_value());
  EXPECT_TRUE(log_->health().has_value());
  open();
  EXPECT_EQ(range().end, appended + 1);
}

TEST_F(SqliteLogTest, ARefusedRecordIsNoFailureOfTheFile) {
  open();
  ASSERT_TRUE(append("before").has_value());
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(settings_.path.c_str(), &db), SQLITE_OK);
  const auto run = [&](const char* sql) {
    return sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  };
  ASSERT_EQ(run("PRAGMA wal_autocheckpoint=0; CREATE TRIGGER refuse BEFORE INSERT ON record "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END"),
            SQLITE_OK);
  EXPECT_EQ(append("refused").error().code, Errc::bad_upstream);
  EXPECT_FALSE(log_->health().has_value());
  EXPECT_EQ(range().end, 1);
  ASSERT_EQ(run("DROP TRIGGER refuse"), SQLITE_OK);
  EXPECT_TRUE(append("after").has_value());
  ASSERT_EQ(run("CREATE TRIGGER refuse_places BEFORE UPDATE ON partition "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END"),
            SQLITE_OK);
  {
    auto consumer = log_->subscribe(listener_);
    const auto records = (*consumer)->poll(1, 0ms);
    EXPECT_EQ((*consumer)->commit(std::vector{records->front().position}).error().code,
              Errc::unavailable)
        << "the file refused no record";
  }
  ASSERT_EQ(run("DROP TRIGGER refuse_places"), SQLITE_OK);
  ASSERT_EQ(run("BEGIN IMMEDIATE"), SQLITE_OK);
  EXPECT_EQ(append("locked out").error().code, Errc::unavailable);
  ASSERT_EQ(run("ROLLBACK"), SQLITE_OK);
  sqlite3_close(db);
  EXPECT_TRUE(append("at last").has_value());
  EXPECT_EQ(range().end, 3);
}

TEST_F(SqliteLogTest, ANewerFormatIsRefused) {
  open();
  log_.reset();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(settings_.path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA user_version=99", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  const auto log = SqliteLog::open(settings_, clock_);
  ASSERT_FALSE(log.has_value());
  EXPECT_EQ(log.error().code, Errc::not_supported);
}

TEST_F(SqliteLogTest, AnotherDatabaseAndNoDatabaseAreRefused) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(settings_.path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "CREATE TABLE other (x)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  EXPECT_EQ(SqliteLog::open(settings_, clock_).error().code, Errc::internal);
  settings_.path = folder_ / "missing" / "log.db";
  EXPECT_EQ(SqliteLog::open(settings_, clock_).error().code, Errc::unavailable);
  settings_.partitions = 0;
  EXPECT_EQ(SqliteLog::open(settings_, clock_).error().code, Errc::invalid_argument);
}

TEST_F(SqliteLogTest, TheWriteAheadLogStaysBounded) {
  settings_.checkpoint_bytes = 100'000;
  open();
  for (int n = 0; n < 500; ++n) {
    ASSERT_TRUE(append(std::to_string(n), std::string(5'000, 'x')).has_value());
  }
  EXPECT_LT(std::filesystem::file_size(settings_.path + "-wal"), 1'000'000U);
}

// A child process appends one record after the other until a fault point kills it at the fifth.
class SqliteLogDeathTest : public SqliteLogTest {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    SqliteLogTest::SetUp();
    // The child runs this test from its start. It has to find its parent's folder.
    setenv("CONVERSED_TEST_LOG", settings_.path.c_str(), 0);
  }
  void TearDown() override {
    unsetenv("CONVERSED_TEST_LOG");
    unsetenv("CONVERSED_TEST_KILL_AT");
    SqliteLogTest::TearDown();
  }
  void append_until_killed() {
    settings_.path = getenv("CONVERSED_TEST_LOG");
    open();
    for (int n = 0; n < 10; ++n) {
      if (append(std::to_string(n))) std::cerr << "appended " << n << "\n";
    }
    finish_all();
  }
};

TEST_F(SqliteLogDeathTest, KilledBeforeACommitTheRecordWasNeitherAnsweredNorKept) {
  setenv("CONVERSED_TEST_KILL_AT", "log.before_commit:5", 1);
  EXPECT_EXIT(append_until_killed(), testing::KilledBySignal(SIGKILL), "appended 3\n$");
  open();
  EXPECT_EQ(range().end, 4);
}

TEST_F(SqliteLogDeathTest, KilledAfterACommitTheRecordIsKeptUnanswered) {
  setenv("CONVERSED_TEST_KILL_AT", "log.after_commit:5", 1);
  EXPECT_EXIT(append_until_killed(), testing::KilledBySignal(SIGKILL), "appended 3\n$");
  open();
  EXPECT_EQ(range().end, 5);
}

TEST_F(SqliteLogDeathTest, KilledBeforeAPositionCommitEverythingIsDeliveredAgain) {
  setenv("CONVERSED_TEST_KILL_AT", "log.before_position_commit", 1);
  EXPECT_EXIT(append_until_killed(), testing::KilledBySignal(SIGKILL), "appended 9\n$");
  open();
  EXPECT_EQ(range().committed, 0);
  EXPECT_EQ(range().end, 10);
}

TEST_F(SqliteLogDeathTest, KilledAfterAPositionCommitNothingIsDeliveredAgain) {
  setenv("CONVERSED_TEST_KILL_AT", "log.after_position_commit", 1);
  EXPECT_EXIT(append_until_killed(), testing::KilledBySignal(SIGKILL), "appended 9\n$");
  open();
  EXPECT_EQ(range().committed, 10);
}

using SqliteLogKeyedTest = SqliteLogTest;

TEST_F(SqliteLogKeyedTest, ExpiredKeysAreDeleted) {
  open();
  for (int n = 0; n < 300; ++n) {
    ASSERT_TRUE(append_keyed(std::to_string(n), key("k" + std::to_string(n), 1)).has_value());
  }
  clock_.advance(25h);
  // Each keyed append deletes a few more keys than it adds.
  for (int n = 0; n < 300; ++n) {
    ASSERT_TRUE(append_keyed("n" + std::to_string(n), key("n" + std::to_string(n), 1)).has_value());
  }
  EXPECT_EQ(query("SELECT count(*) FROM append_key"), 300);
}

TEST_F(SqliteLogKeyedTest, AFailedTransactionLeavesNoKey) {
  settings_.max_file_bytes = 200'000;
  open();
  ASSERT_TRUE(append_keyed("id", key("before", 1)).has_value());
  while (append("filler", std::string(5'000, 'x')).has_value()) {
  }
  while (append("filler").has_value()) {
  }
  int refused = 0;
  for (int n = 0; n < 50 && refused == 0; ++n) {
    const auto done = append_keyed("id" + std::to_string(n), key("k" + std::to_string(n), 1));
    if (!done) {
      ++refused;
      EXPECT_EQ(done.error().code, Errc::unavailable);
      // Appends fail, but look-ups of earlier appends still work.
      EXPECT_FALSE(look_up(key("k" + std::to_string(n), 1))->has_value());
      EXPECT_TRUE(look_up(key("before", 1))->has_value());
      finish_all();
      EXPECT_FALSE(append_keyed("again", key("k" + std::to_string(n), 1))->repeated);
    }
  }
  EXPECT_EQ(refused, 1);
}

TEST_F(SqliteLogTest, PurgeLeavesNothingOfFinishedRecordsInTheFiles) {
  settings_.prune_after_records = 1'000'000;
  open();
  const std::string finished = "the finished record says this";
  const std::string waiting = "the waiting record says that";
  for (int n = 0; n < 200; ++n) ASSERT_TRUE(append(std::to_string(n), finished));
  log_->set_pruning(Pruning::held);  // an idle log prunes
  finish_all();
  ASSERT_TRUE(append("200", waiting));
  ASSERT_TRUE(in_files(finished));
  EXPECT_EQ(log_->purge().error().code, Errc::conflict);
  log_->set_pruning(Pruning::on);
  ASSERT_TRUE(log_->purge());
  EXPECT_FALSE(in_files(finished));
  EXPECT_TRUE(in_files(waiting));
  EXPECT_EQ(range().first, 200);
  EXPECT_EQ(append("201")->position.offset, 201) << "an offset was used twice";
  open();
  EXPECT_EQ(range().end, 202);
}

TEST_F(SqliteLogTest, AppendsGoOnWhileMuchIsCleared) {
  settings_.prune_after_records = 1;
  open();
  const std::string mark = "MARK OF WHAT IS FINISHED ";
  std::string much;
  while (much.size() < 200'000) much += mark;
  for (int n = 0; n < 40; ++n) ASSERT_TRUE(append(std::to_string(n), much));
  finish_all();
  ASSERT_TRUE(in_files(mark));
  // Makes each append when the one before is durable. Between two appends the purge takes at most
  // one step.
  std::atomic<bool> cleared = false;
  std::atomic<int> appended = 0;
  std::promise<void> ended;
  std::function<void(Result<Appended>)> again = [&](const Result<Appended>& done) {
    EXPECT_TRUE(done);
    ++appended;
    if (cleared) return ended.set_value();
    log_->append(Record{"key", "after", "inject", "", "v"}, again);
  };
  log_->append(Record{"key", "after", "inject", "", "v"}, again);
  const int before = appended;
  EXPECT_TRUE(log_->purge());
  EXPECT_GE(appended - before, 8) << "one step of the purge took too long";
  cleared = true;
  ended.get_future().wait();
  EXPECT_EQ(query("SELECT count(*) FROM probe"), 0);
  EXPECT_FALSE(in_files(mark));
  EXPECT_EQ(range().end, 40 + appended);
}

TEST_F(SqliteLogTest, SpaceOfAnInterruptedPurgeIsFreed) {
  open();
  log_.reset();
  for (int n = 0; n < 40; ++n) {
    query("INSERT INTO probe (space) VALUES (zeroblob(10000)) RETURNING number");
  }
  open();
  ASSERT_TRUE(log_->purge());  // removes the rest of an interrupted purge
  EXPECT_EQ(query("SELECT count(*) FROM probe"), 0);
}

TEST_F(SqliteLogTest, UnfinishedRecordsAreCountedByTheirKeys) {
  settings_.prune_after_records = 1'000'000;
  open();
  ASSERT_TRUE(append("0"));
  EXPECT_EQ(unfinished({{"key", "kez"}}).value(), 1);
  finish_all();
  EXPECT_EQ(unfinished({{"key", "kez"}}).value(), 0)
      << "the finished record is kept, but does not count";
  ASSERT_TRUE(append("1"));
  ASSERT_TRUE(append("2"));
  EXPECT_EQ(unfinished({{"key", "kez"}}).value(), 2);
  EXPECT_EQ(unfinished({{"kez", "key"}}).value(), 0);
  EXPECT_EQ(unfinished({{"a", "key"}}).value(), 0) << "the range does not include its end";
  EXPECT_EQ(unfinished({{"a", "b"}, {"key", "kez"}, {"x", "y"}}).value(), 2);
  EXPECT_EQ(unfinished({}).value(), 0);
}

}  // namespace
}  // namespace conversed::queue
