// SQLite's page cache, which passes over truncations that would find nothing.
#include "store/sql/page_cache.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>
#include <random>
#include <string>

#include "store/sql/sqlite.h"
#include "tests/support/temp_folder.h"

namespace conversed::store {
namespace {

TEST(CachedPages, KnowTheHighestPage) {
  CachedPages pages;
  EXPECT_FALSE(pages.may_reach(1));
  pages.added(7);
  pages.added(3);
  EXPECT_TRUE(pages.may_reach(7));
  EXPECT_FALSE(pages.may_reach(8));
  pages.truncated(5);
  EXPECT_TRUE(pages.may_reach(4));
  EXPECT_FALSE(pages.may_reach(5));
}

TEST(CachedPages, ForgetANumberThatAPageHadForAMoment) {
  CachedPages pages;
  pages.added(7);
  pages.renumbered(3, 100);
  EXPECT_TRUE(pages.may_reach(100));
  pages.renumbered(7, 3);
  pages.renumbered(100, 7);
  EXPECT_TRUE(pages.may_reach(7));
  EXPECT_FALSE(pages.may_reach(8));
}

TEST(CachedPages, KnowAllPagesThatStayAtTheirNewNumbers) {
  CachedPages pages;
  pages.added(7);
  pages.renumbered(3, 100);
  pages.renumbered(4, 50);
  pages.renumbered(100, 3);
  EXPECT_TRUE(pages.may_reach(50)) << "more is allowed, less is not";
  pages.truncated(60);
  EXPECT_TRUE(pages.may_reach(50));
  EXPECT_FALSE(pages.may_reach(60));
}

// Counts the truncations that reach SQLite's own cache.
int truncations = 0;
sqlite3_pcache_methods2 sqlites;

void count_truncations() {
  ASSERT_EQ(sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &sqlites), SQLITE_OK);
  auto counting = sqlites;
  counting.xTruncate = [](sqlite3_pcache* cache, unsigned first) {
    ++truncations;
    sqlites.xTruncate(cache, first);
  };
  ASSERT_EQ(sqlite3_config(SQLITE_CONFIG_PCACHE2, &counting), SQLITE_OK);
}

TEST(PageCache, CommitsTruncateNothingAndRollbacksTheirOwnPages) {
  count_truncations();
  const tests::TempFolder folder;
  const auto writer = open_sqlite(folder / "test.db", Connection::Role::writer,
                                  std::chrono::milliseconds(100), 1024);
  writer->script("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)");
  std::mt19937 random(7);
  std::int64_t last = 0;
  const auto insert = [&](int rows) {
    for (int i = 0; i < rows; ++i) {
      const auto text = std::to_string(random()) + std::string(random() % 300, 'x');
      writer->run("INSERT INTO t VALUES (:n, :t)", ++last, text);
    }
  };
  const auto count = [&] { return writer->number("SELECT COUNT(*) FROM t"); };
  for (int round = 0; round < 20; ++round) {
    truncations = 0;
    for (int commit = 0; commit < 20; ++commit) {
      writer->begin();
      insert(20);
      writer->commit();
    }
    EXPECT_EQ(truncations, 0) << "each would visit all pages in the cache";
    const auto before = count();
    writer->begin();
    insert(300);
    writer->rollback();
    EXPECT_GT(truncations, 0) << "pages behind the database's end must not stay";
    writer->begin();
    insert(20);
    writer->script("SAVEPOINT s");
    insert(100);
    writer->script("ROLLBACK TO s; RELEASE s");
    writer->run("DELETE FROM t WHERE n % 7 = :r", round % 7);
    writer->commit();
    EXPECT_LE(count(), before + 20);
    ASSERT_EQ(writer->value<std::string>("PRAGMA integrity_check"), "ok");
  }
}

}  // namespace
}  // namespace conversed::store
