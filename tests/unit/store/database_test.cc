#include "store/sql/database.h"

#include <sys/stat.h>

#include "store/sql/sql.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

TEST(Database, StoreOfANewerProgramIsRefused) {
  const StorePlace place;
  const auto settings = place.database();
  {
    auto database = Database::open(settings);
    ASSERT_TRUE(database);
    (*database)->writer().run("INSERT INTO schema_version (version, min_reader) VALUES (:v, :r)",
                              schema_version + 1, schema_version);
  }
  EXPECT_TRUE(Database::open(settings)) << "an expanded schema can still be used";
  {
    auto database = Database::open(settings);
    (*database)->writer().run("INSERT INTO schema_version (version, min_reader) VALUES (:v, :r)",
                              schema_version + 2, schema_version + 1);
  }
  auto refused = Database::open(settings);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, model::Errc::conflict);
}

TEST(SqliteDatabase, FileIsPrivate) {
  const TempFolder folder;
  auto database = Database::open({.file = folder.path() / "store.db"});
  ASSERT_TRUE(database);
  for (const char* name : {"store.db", "store.db-wal", "store.db-shm"}) {
    struct stat status {};
    ASSERT_EQ(::stat((folder.path() / name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U) << name;
  }
}

TEST(Database, ReadersCanNotWrite) {
  const StorePlace place;
  auto database = Database::open(place.database());
  ASSERT_TRUE(database);
  EXPECT_THROW((*database)->reader()->run("DELETE FROM meta"), SqlError);
}

TEST(Database, ReaderSeesWhatWasCommittedBetweenTwoReads) {
  const StorePlace place;
  auto settings = place.database();
  settings.readers = 1;
  auto database = Database::open(settings);
  ASSERT_TRUE(database);
  const auto count = [&] {
    return *(*database)->reader()->value<std::int64_t>("SELECT COUNT(*) FROM meta");
  };
  EXPECT_EQ(count(), 0);
  (*database)->writer().run("INSERT INTO meta (name, value) VALUES ('a', 1)");
  EXPECT_EQ(count(), 1) << "an open statement would keep its old snapshot";
}

TEST(SqliteDatabase, PathThatCanNotBeOpenedIsUnavailable) {
  EXPECT_EQ(Database::open({.file = "/nowhere/store.db"}).error().code, model::Errc::unavailable);
}

using StoreLife = StoreTest;

TEST_F(StoreLife, StoreWithoutItsKeyIsRefused) {
  store_.reset();
  std::filesystem::remove(folder_.path() / "master.key");
  auto opened = Store::open(place_.store(), clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, model::Errc::not_found);
}

}  // namespace
}  // namespace conversed::store
