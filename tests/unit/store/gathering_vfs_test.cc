// SQLite's files with gathered writes, also when the power goes at any of them.
#include "store/sql/gathering_vfs.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "store/sql/sqlite.h"
#include "tests/support/faulty_vfs.h"
#include "tests/support/lossy_file.h"
#include "tests/support/temp_folder.h"

namespace conversed::store {
namespace {

using Rows = std::map<std::int64_t, std::string>;

tests::FaultyVfs& disk() {
  return tests::FaultyVfs::get();
}

std::unique_ptr<Connection> open(const std::filesystem::path& file, Connection::Role role) {
  return open_sqlite(file, role, std::chrono::milliseconds(100), 1024);
}

Rows rows_of(Connection& connection) {
  Rows rows;
  connection.rows([&](std::int64_t n, std::string text) { rows[n] = std::move(text); },
                  "SELECT n, text FROM t");
  return rows;
}

class GatheringVfsTest : public testing::Test {
 protected:
  void SetUp() override {
    disk();  // before SQLite has opened a file
    writer_ = open(file_, Connection::Role::writer);
    writer_->script("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT NOT NULL)");
  }
  void TearDown() override {
    writer_.reset();
    disk().forget_files();
  }
  void put(std::int64_t n, const std::string& text) {
    writer_->run("INSERT INTO t VALUES (:n, :t) ON CONFLICT (n) DO UPDATE SET text = excluded.text",
                 n, text);
  }

  const tests::TempFolder folder_;
  const std::filesystem::path file_ = folder_ / "test.db";
  std::unique_ptr<Connection> writer_;
};

TEST_F(GatheringVfsTest, FramesOfACommitAreOneWrite) {
  const auto reader = open(file_, Connection::Role::reader);
  for (int commit = 0; commit < 10; ++commit) {
    writer_->begin();
    for (int n = 0; n < 100; ++n) put(n, std::string(500, static_cast<char>('a' + commit)));
    const auto before = disk().writes("-wal");
    writer_->commit();
    EXPECT_EQ(disk().writes("-wal") - before, 1U);
    EXPECT_EQ(rows_of(*reader).at(99)[0], 'a' + commit);
  }
}

TEST_F(GatheringVfsTest, PagesThatLeaveTheCacheEarlyAreReadBack) {
  writer_->script("PRAGMA cache_spill=ON; PRAGMA cache_size=10");
  writer_->begin();
  for (int n = 0; n < 1'000; ++n) put(n, std::string(800, 'x'));
  EXPECT_EQ(rows_of(*writer_).size(), 1'000U);
  const auto reader = open(file_, Connection::Role::reader);
  EXPECT_TRUE(rows_of(*reader).empty());
  writer_->rollback();
  EXPECT_TRUE(rows_of(*writer_).empty());
  put(1, "after");
  EXPECT_EQ(rows_of(*reader), (Rows{{1, "after"}}));
}

TEST_F(GatheringVfsTest, WriteThatFailsFailsTheCommit) {
  put(1, "before");
  const auto reader = open(file_, Connection::Role::reader);
  for (const int code : {SQLITE_FULL, SQLITE_IOERR_WRITE}) {
    writer_->begin();
    put(1, "lost");
    disk().fail_write("-wal", 1, code);
    EXPECT_THROW(writer_->commit(), SqliteError);
    writer_->rollback();
    EXPECT_EQ(rows_of(*reader), (Rows{{1, "before"}}));
    EXPECT_EQ(rows_of(*writer_), (Rows{{1, "before"}}));
  }
  put(1, "after");
  EXPECT_EQ(rows_of(*reader), (Rows{{1, "after"}}));
}

TEST_F(GatheringVfsTest, LargeCommitIsWrittenInPartsAndMayFailInEach) {
  const auto reader = open(file_, Connection::Role::reader);
  const auto put_many = [this](char letter) {
    writer_->begin();
    for (int n = 0; n < 350; ++n) put(n, std::string(800, letter));
  };
  put_many('a');
  const auto before = disk().writes("-wal");
  writer_->commit();
  EXPECT_EQ(disk().writes("-wal") - before, 4U);
  for (std::size_t nth = 1; nth <= 3; ++nth) {
    SCOPED_TRACE(nth);
    put_many('b');
    disk().fail_write("-wal", nth, SQLITE_FULL);
    EXPECT_THROW(writer_->commit(), SqliteError);
    writer_->rollback();
    EXPECT_EQ(rows_of(*reader).at(349)[0], 'a');
    EXPECT_EQ(reader->value<std::string>("PRAGMA integrity_check"), "ok");
  }
  put_many('c');
  writer_->commit();
  EXPECT_EQ(rows_of(*reader).at(349)[0], 'c');
}

TEST_F(GatheringVfsTest, CheckpointReadsAheadAndNothingStale) {
  for (const char letter : {'a', 'b', 'c'}) {
    writer_->begin();
    for (int n = 0; n < 400; ++n) put(n, std::string(800, letter));
    writer_->commit();
    const auto before = disk().reads("-wal");
    writer_->script("PRAGMA wal_checkpoint(PASSIVE)");
    EXPECT_LT(disk().reads("-wal") - before, 100U) << "for 400 pages and more";
    const auto other = open(file_, Connection::Role::reader);
    const auto rows = rows_of(*other);
    EXPECT_TRUE(std::ranges::all_of(
        rows, [&](const auto& row) { return row.second == std::string(800, letter); }));
  }
}

// Else SQLite takes back the statement alone, and commits without the frames of earlier ones.
TEST_F(GatheringVfsTest, WriteThatFailsBeforeAReadEndsTheTransaction) {
  writer_->script(
      "CREATE TABLE u (n INTEGER PRIMARY KEY, x TEXT UNIQUE, y INTEGER CHECK (y < 9));"
      "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60)"
      " INSERT INTO u SELECT i, printf('%.500c%d', 'a', i), 0 FROM c;"
      "PRAGMA cache_spill=ON; PRAGMA cache_size=10");
  const auto reader = open(file_, Connection::Role::reader);
  for (std::size_t nth = 1; nth <= 8; ++nth) {
    SCOPED_TRACE(nth);
    writer_->begin();
    writer_->run("UPDATE u SET y = 1 WHERE n <= 30");
    disk().fail_write("-wal", nth, SQLITE_FULL);
    EXPECT_THROW(writer_->run("UPDATE u SET x = x || 'b', y = 2"), SqliteError);
    EXPECT_THROW(writer_->commit(), SqliteError) << "the transaction is over";
    EXPECT_EQ(reader->value<std::string>("PRAGMA integrity_check"), "ok");
    EXPECT_EQ(reader->number("SELECT SUM(y) FROM u"), 0);
  }
}

// A check tells of damage, and goes on.
TEST_F(GatheringVfsTest, LostFramesFailTheCommitThoughTheirReadFailedNoStatement) {
  for (int n = 0; n < 200; ++n) put(n, std::string(800, 'a'));
  writer_->script("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA cache_spill=ON; PRAGMA cache_size=10");
  writer_->begin();
  for (int n = 0; n < 60; ++n) put(n, std::string(800, 'b'));
  disk().fail_write("-wal", 1, SQLITE_FULL);
  EXPECT_NE(writer_->value<std::string>("PRAGMA integrity_check"), "ok");
  EXPECT_THROW(writer_->commit(), SqliteError);
  writer_->rollback();
  put(1, "after");
  const auto other = open(file_, Connection::Role::reader);
  EXPECT_EQ(other->value<std::string>("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(rows_of(*other).at(0)[0], 'a');
  EXPECT_EQ(rows_of(*other).at(1), "after");
}

TEST_F(GatheringVfsTest, CheckpointThatFailsLosesNothing) {
  for (const bool is_partial : {false, true}) {
    SCOPED_TRACE(is_partial ? "behind a reader's snapshot" : "of the whole log");
    const std::string text(800, is_partial ? 'p' : 'w');
    for (int n = 500; n < 600; ++n) put(n, text);
    const auto reader = open(file_, Connection::Role::reader);
    if (is_partial) {
      reader->begin_snapshot();
      EXPECT_EQ(rows_of(*reader).at(500), text);
    }
    for (int n = 1; n < 200; ++n) put(n, text);
    disk().fail_write(".db", 1, SQLITE_FULL);
    EXPECT_THROW(writer_->script("PRAGMA wal_checkpoint(PASSIVE)"), SqliteError);
    if (is_partial) reader->rollback();
    writer_->script("PRAGMA wal_checkpoint(TRUNCATE)");
    const auto other = open(file_, Connection::Role::reader);  // has no page in its cache
    EXPECT_EQ(other->value<std::string>("PRAGMA integrity_check"), "ok");
    const auto rows = rows_of(*other);
    EXPECT_EQ(rows.at(199), text);
    EXPECT_EQ(rows.at(599), text);
  }
}

// SQLite 3.40 would lose it if it had written pages before the commit: see open_sqlite.
TEST_F(GatheringVfsTest, CommitBehindARolledBackSavepointOutlivesALossOfPower) {
  writer_->script("PRAGMA cache_size=10");
  for (int n = 0; n < 60; ++n) put(n, std::string(800, 'a'));
  writer_->begin();
  writer_->savepoint();
  for (int n = 0; n < 60; ++n) put(n, std::string(800, 'b'));
  for (const char letter : {'c', 'd'}) {
    for (int n = 40; n < 60; ++n) put(n, std::string(800, letter));
  }
  writer_->rollback_to_savepoint();
  put(1, "kept");
  writer_->commit();
  disk().cut_power_at(1);
  writer_.reset();
  const tests::TempFolder after;
  std::mt19937_64 random(1);
  disk().lose_power(after.path(), random);
  const auto other = open(after / "test.db", Connection::Role::writer);
  EXPECT_EQ(rows_of(*other).at(1), "kept");
  EXPECT_EQ(rows_of(*other).at(2)[0], 'a');
}

// A database that loses power again and again, and its rows as they have to be.
class LosingWorld {
 public:
  explicit LosingWorld(std::uint64_t seed) : random_(seed) {
    disk();  // before SQLite has opened a file
  }

  // One life of the database: until the power goes. Then its next one begins.
  void live() {
    writer_ = open(folder_->path() / "test.db", Connection::Role::writer);
    writer_->script(
        "CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, text TEXT NOT NULL);"
        "PRAGMA wal_autocheckpoint=" +
        std::to_string(1 + below(40)) + "; PRAGMA cache_size=" + std::to_string(5 + below(100)));
    check();
    attempted_ = rows_;
    reader_ = open(folder_->path() / "test.db", Connection::Role::reader);
    disk().cut_power_at(1 + below(60));
    try {
      while (!disk().is_off()) step();
    } catch (const SqliteError&) {
      EXPECT_TRUE(disk().is_off());
    }
    reader_.reset();
    writer_.reset();
    auto next = std::make_unique<tests::TempFolder>();
    disk().lose_power(next->path(), random_);
    folder_ = std::move(next);
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

  void step() {
    if (below(20) == 0) {
      writer_->script("PRAGMA wal_checkpoint(TRUNCATE)");
      return;
    }
    // Behind a reader's snapshot a checkpoint takes a part of the log.
    if (below(10) == 0) {
      reader_->rollback();
      reader_->begin_snapshot();
      EXPECT_EQ(rows_of(*reader_), rows_);
    }
    if (below(10) == 0) reader_->rollback();
    writer_->begin();
    // Now and then more than the VFS gathers.
    for (auto changes = 1 + below(below(30) == 0 ? 300 : 20); changes > 0; --changes) change();
    // SQLite 3.40 would lose the commit: see open_sqlite.
    if (!spills_ && below(4) == 0) {
      writer_->savepoint();
      const auto before = attempted_;
      for (auto changes = below(20); changes > 0; --changes) change();
      writer_->rollback_to_savepoint();
      attempted_ = before;
    }
    if (below(8) == 0) {
      writer_->rollback();
      attempted_ = rows_;
      return;
    }
    writer_->commit();
    rows_ = attempted_;
  }
  void change() {
    const auto n = static_cast<std::int64_t>(below(60));
    if (below(4) == 0) {
      writer_->run("DELETE FROM t WHERE n = :n", n);
      attempted_.erase(n);
      return;
    }
    std::string text(1 + below(2'000), static_cast<char>('a' + below(26)));
    writer_->run("INSERT OR REPLACE INTO t VALUES (:n, :t)", n, text);
    attempted_[n] = std::move(text);
  }
  // The last commit, which was not acknowledged, may have become durable; nothing else.
  void check() {
    EXPECT_EQ(writer_->value<std::string>("PRAGMA integrity_check"), "ok");
    const auto found = rows_of(*writer_);
    ASSERT_TRUE(found == rows_ || found == attempted_);
    rows_ = found;
  }

  std::mt19937_64 random_;
  bool spills_ = false;  // writes pages before their commit
  std::unique_ptr<tests::TempFolder> folder_ = std::make_unique<tests::TempFolder>();
  std::unique_ptr<Connection> writer_;
  std::unique_ptr<Connection> reader_;
  Rows rows_;       // acknowledged
  Rows attempted_;  // with the changes of the transaction under way
};

TEST(GatheringVfsPowerTest, NoAcknowledgedCommitIsLostOrHalved) {
  constexpr std::size_t lives_of_a_world = 20;
  std::uint64_t seed = tests::first_seed();
  for (std::size_t point = 0; point < tests::crash_points(300); point += lives_of_a_world, ++seed) {
    SCOPED_TRACE("CONVERSED_TEST_SEED=" + std::to_string(seed));
    LosingWorld world(seed);
    for (std::size_t life = 0; life < lives_of_a_world; ++life) {
      world.live();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace conversed::store
