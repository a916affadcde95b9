#include "store/sql/sqlite_copy.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "tests/support/temp_folder.h"

namespace conversed::store {
namespace {

using model::Errc;

using Handle = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;

Handle open(const std::filesystem::path& file) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  return {db, sqlite3_close};
}

void run(sqlite3* db, const std::string& sql) {
  ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
}

std::int64_t number(sqlite3* db, const char* sql) {
  std::int64_t value = -1;
  const auto take = [](void* into, int, char** texts, char**) {
    *static_cast<std::int64_t*>(into) = std::stoll(texts[0]);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(db, sql, take, &value, nullptr), SQLITE_OK);
  return value;
}

bool always() {
  return true;
}

class SqliteCopyTest : public testing::Test {
 protected:
  // A source of many slices.
  void SetUp() override {
    run(source_.get(), "PRAGMA journal_mode=WAL; CREATE TABLE t (n INTEGER, blob BLOB)");
    run(source_.get(),
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000)"
        " INSERT INTO t SELECT n, zeroblob(8000) FROM c");
  }

  tests::TempFolder folder_;
  const std::filesystem::path from_ = folder_ / "from.db";
  const std::filesystem::path to_ = folder_ / "to.db";
  Handle source_ = open(from_);
};

TEST_F(SqliteCopyTest, CopyIsOneStateWhileOthersWrite) {
  // The sum is the same in every committed state, but not in a mixture of two.
  run(source_.get(), "UPDATE t SET n = 0");
  std::atomic<bool> copied = false;
  int slices = 0;
  std::thread writer([&] {
    const auto other = open(from_);
    sqlite3_busy_timeout(other.get(), 60'000);
    while (!copied) {
      run(other.get(),
          "BEGIN IMMEDIATE; UPDATE t SET n = n + 1 WHERE rowid % 2 = 0;"
          " UPDATE t SET n = n - 1 WHERE rowid % 2 = 1; COMMIT");
    }
  });
  const auto done = copy_sqlite_file(from_, to_, [&] { return ++slices > 0; });
  copied = true;
  writer.join();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_GT(slices, 2) << "the copy was made in one slice";
  EXPECT_TRUE(check_sqlite_file(to_));
  const auto copy = open(to_);
  EXPECT_EQ(number(copy.get(), "SELECT COUNT(*) FROM t"), 2'000);
  EXPECT_EQ(number(copy.get(), "SELECT SUM(n) FROM t"), 0);
}

TEST_F(SqliteCopyTest, CopyIsPrivateAndNeverOverwrites) {
  ASSERT_TRUE(copy_sqlite_file(from_, to_, always));
  struct stat status {};
  ASSERT_EQ(::stat(to_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(copy_sqlite_file(from_, to_, always).error().code, Errc::conflict);
  EXPECT_TRUE(check_sqlite_file(to_));
}

TEST_F(SqliteCopyTest, StoppedCopyLeavesNoFile) {
  int slices = 0;
  const auto done = copy_sqlite_file(from_, to_, [&] { return ++slices < 3; });
  EXPECT_EQ(done.error().code, Errc::unavailable);
  EXPECT_FALSE(std::filesystem::exists(to_));
  EXPECT_TRUE(copy_sqlite_file(from_, to_, always));
}

TEST_F(SqliteCopyTest, DamagedFileIsFound) {
  ASSERT_TRUE(copy_sqlite_file(from_, to_, always));
  {
    std::fstream file(to_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(4096);
    file << std::string(4096, 'x');
  }
  EXPECT_EQ(check_sqlite_file(to_).error().code, Errc::internal);
  std::ofstream(to_, std::ios::trunc) << "no database at all, but long enough to have a header";
  EXPECT_FALSE(check_sqlite_file(to_));
}

TEST_F(SqliteCopyTest, StoppedCheckIsNoVerdictOnTheFile) {
  ASSERT_TRUE(copy_sqlite_file(from_, to_, always));
  std::stop_source stop;
  EXPECT_TRUE(check_sqlite_file(to_, {}, stop.get_token()));
  stop.request_stop();
  EXPECT_EQ(check_sqlite_file(to_, {}, stop.get_token()).error().code, Errc::unavailable);
}

TEST_F(SqliteCopyTest, NamesWithUriCharactersAreTakenLiterally) {
  const auto odd = folder_ / "a?b#c%20d.db";
  ASSERT_TRUE(copy_sqlite_file(from_, odd, always));
  EXPECT_TRUE(check_sqlite_file(odd));
}

}  // namespace
}  // namespace conversed::store
