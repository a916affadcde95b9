#include "store/sql/database.h"

#include <sys/stat.h>

#include <algorithm>

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

// More than one statement takes.
constexpr int many_rows = 2500;

TEST(Database, AnswersBelongToTheirRowsOfParameters) {
  const StorePlace place;
  auto database = Database::open(place.database());
  ASSERT_TRUE(database);
  Connection& writer = (*database)->writer();
  writer.begin();
  const auto name_of = [](int i) { return std::string("n\0\x01", 3) + std::to_string(i); };
  const auto body_of = [&](int i) {
    return i % 3 == 0 ? std::nullopt : std::optional(i % 3 == 1 ? name_of(i) : std::string());
  };
  for (int i = 0; i < many_rows; ++i) {
    writer.run_row(
        "INSERT INTO answers (input_id, body, expires_at, session_key) VALUES (:i, :b, :e, 'key')",
        name_of(i), body_of(i), i);
  }
  std::vector<Asked<std::optional<std::string>, int>> asked;
  for (int i = 0; i < 2 * many_rows; ++i) {
    asked.push_back(writer.ask<std::optional<std::string>, int>(
        "SELECT body, expires_at FROM answers WHERE input_id = :i", name_of(2 * i)));
  }
  for (int i = 0; i < 2 * many_rows; ++i) {
    const auto row = asked[static_cast<std::size_t>(i)].take();
    ASSERT_EQ(row.has_value(), 2 * i < many_rows) << i;
    if (row) EXPECT_EQ(*row, std::tuple(body_of(2 * i), 2 * i));
  }
  writer.rollback();
}

TEST(Database, AnAnswerHasAllRowsOfItsQuestion) {
  const StorePlace place;
  auto database = Database::open(place.database());
  ASSERT_TRUE(database);
  Connection& writer = (*database)->writer();
  writer.begin();
  const auto key_of = [](int rows) { return "key" + std::to_string(rows); };
  for (int rows = 0; rows < 4; ++rows) {
    for (int row = 0; row < rows; ++row) {
      writer.run_row(
          "INSERT INTO answers (input_id, body, expires_at, session_key)"
          " VALUES (:i, NULL, :e, :k)",
          key_of(rows) + std::to_string(row), row, key_of(rows));
    }
  }
  const auto ask = [&](int rows) {
    return writer.ask<int>("SELECT expires_at FROM answers WHERE session_key = :k", key_of(rows));
  };
  const auto sorted = [](Asked<int>& asked) {
    auto all = asked.take_all([](int expires) { return expires; });
    std::ranges::sort(all);
    return all;
  };
  auto alone = ask(3);
  EXPECT_EQ(sorted(alone), (std::vector{0, 1, 2}));
  std::vector<Asked<int>> asked;
  for (const int rows : {2, 0, 3, 1, 2}) asked.push_back(ask(rows));
  EXPECT_EQ(sorted(asked[0]), (std::vector{0, 1}));
  EXPECT_EQ(sorted(asked[1]), (std::vector<int>()));
  EXPECT_EQ(sorted(asked[2]), (std::vector{0, 1, 2}));
  EXPECT_EQ(sorted(asked[3]), (std::vector{0}));
  EXPECT_EQ(sorted(asked[4]), (std::vector{0, 1}));
  writer.rollback();
}

TEST(Database, ChangesOfOneRowKeepTheirOrder) {
  const StorePlace place;
  auto database = Database::open(place.database());
  ASSERT_TRUE(database);
  Connection& writer = (*database)->writer();
  const auto add = [&](const std::string& name, int value) {
    writer.run_row(
        "INSERT INTO meta (name, value) VALUES (:n, :v)"
        " ON CONFLICT (name) DO UPDATE SET value = meta.value * 10 + excluded.value",
        name, value);
  };
  const char* const appending = "UPDATE meta SET value = value * 10 + :v WHERE name = :n";
  const auto append = [&](const std::string& name, int value) {
    writer.run_row(appending, value, name);
  };
  writer.begin();
  add("a", 1);
  add("b", 1);
  add("a", 2);
  append("a", 3);
  append("b", 2);
  append("a", 4);
  writer.run("UPDATE meta SET value = value * 10 + 5");
  append("a", 6);
  append("b", 6);
  writer.run(appending, 7, std::string("a"));
  append("a", 8);
  EXPECT_EQ(writer.run_counted(appending, 9, std::string("a")), 1);
  writer.run_row("DELETE FROM meta WHERE name = :n", std::string("b"));
  writer.run_row("DELETE FROM meta WHERE name = :n", std::string("c"));
  writer.commit();
  EXPECT_EQ((*database)->reader()->value<int>("SELECT value FROM meta WHERE name = 'a'"),
            123456789);
  EXPECT_EQ((*database)->reader()->number("SELECT COUNT(*) FROM meta"), 1);
}

TEST(Database, SelectedRowsAreAddedOrChangedInTheirOrder) {
  const StorePlace place;
  auto database = Database::open(place.database());
  ASSERT_TRUE(database);
  Connection& writer = (*database)->writer();
  const auto add = [&](const std::string& source, const std::string& digit) {
    writer.run_row(
        "INSERT INTO claims (id, created_at) SELECT 'of ' || name, value * 10 + length(:d)"
        " FROM meta WHERE name = :n"
        " ON CONFLICT (id) DO UPDATE SET created_at = claims.created_at * 10 +"
        " excluded.created_at",
        digit, source);
  };
  writer.begin();
  for (const char* name : {"a", "b"}) {
    writer.run_row("INSERT INTO meta (name, value) VALUES (:n, 0)", std::string(name));
  }
  add("a", "1");
  add("b", "123");
  add("nothing", "1");
  add("a", "12");
  add("a", "123");
  writer.commit();
  const auto reader = (*database)->reader();
  EXPECT_EQ(reader->value<int>("SELECT created_at FROM claims WHERE id = 'of a'"), 123);
  EXPECT_EQ(reader->value<int>("SELECT created_at FROM claims WHERE id = 'of b'"), 3);
  EXPECT_EQ(reader->number("SELECT COUNT(*) FROM claims"), 2);
}

TEST(Database, RowsOfATransactionThatFailedAreForgotten) {
  const StorePlace place;
  auto database = Database::open(place.database());
  ASSERT_TRUE(database);
  Connection& writer = (*database)->writer();
  const auto add = [&](const std::string& name) {
    writer.run_row("INSERT INTO meta (name, value) VALUES (:n, 1)", name);
  };
  writer.begin();
  add("a");
  add("b");
  writer.rollback();
  writer.begin();
  add("c");
  EXPECT_THROW(
      {
        add("c");
        writer.commit();
      },
      SqlError);
  writer.rollback();
  writer.begin();
  add("d");
  writer.commit();
  EXPECT_EQ((*database)->reader()->values<std::string>("SELECT name FROM meta"),
            std::vector<std::string>{"d"});
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

TEST_F(StoreLife, StoreWithoutSecretsHasItsKeyToo) {
  const auto key = folder_.path() / "master.key";
  const auto away = folder_.path() / "key of the store";
  store_.reset();
  std::filesystem::rename(key, away);
  ASSERT_TRUE(Sealer::create_key_file(key));
  auto opened = Store::open(place_.store(), clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, model::Errc::conflict);
  std::filesystem::rename(away, key);
  open();
  // A rotation changes the store's key.
  store_->committer().start();
  const auto rotated = store_->key_rotation().rotate();
  ASSERT_TRUE(rotated) << rotated.error().message;
  open();
  store_.reset();
  std::filesystem::rename(rotated->kept, key);
  opened = Store::open(place_.store(), clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, model::Errc::conflict);
}

}  // namespace
}  // namespace conversed::store
