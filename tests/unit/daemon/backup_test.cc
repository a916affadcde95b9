#include "daemon/backup.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <fstream>
#include <future>
#include <iterator>

#include "daemon/data_folder.h"
#include "daemon/embedded.h"
#include "daemon/restore.h"
#include "tests/unit/store/fixture.h"

namespace conversed::daemon {
namespace {

using model::Errc;
using tests::ManualClock;
using tests::TempFolder;

// A data folder with a store and a log, as a daemon leaves them.
class BackupTest : public testing::Test {
 protected:
  void SetUp() override {
    settings_.data_dir = folder_ / "data";
    settings_.queue.partitions = 1;
    std::filesystem::create_directory(settings_.data_dir);
    fill(1);
  }

  // The store has had the effects of the records below `seen`, of three that are in the log.
  void fill(std::int64_t seen) {
    auto store = open_store(settings_, clock_);
    ASSERT_TRUE(store) << store.error().message;
    auto log = open_log(settings_, **store, clock_);
    ASSERT_TRUE(log) << log.error().message;
    for (int n = 0; n < 3; ++n) {
      std::promise<model::Result<queue::Appended>> done;
      log->log->append({"key", "record " + std::to_string(n), "inject", "", "v"},
                       [&](auto appended) { done.set_value(std::move(appended)); });
      ASSERT_TRUE(done.get_future().get());
    }
    for (std::int64_t offset = 0; offset < seen; ++offset) {
      auto unit = store::turn(key_, offset, offset);
      unit.after.position = {.epoch = 1, .partition = 0, .offset = offset};
      ASSERT_EQ(store::commit((*store)->committer(), std::move(unit)), store::Outcome::committed);
    }
    ASSERT_TRUE((*store)->mark_running());
    log->log->stop();
  }

  config::Settings other_folder(const char* name) const {
    auto other = settings_;
    other.data_dir = folder_ / name;
    return other;
  }

  model::Result<MadeBackup> back_up(const std::string& name = "") {
    return BackupMaker(settings_, clock_, nullptr).make(name);
  }

  RestoreOrder order(const std::filesystem::path& backup) const {
    return {.backup = backup, .key = settings_.data_dir / "master.key"};
  }

  // Undoes the newest migration, all of whose changes are additions.
  static void make_older(const std::filesystem::path& file) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db,
                           "DELETE FROM schema_version WHERE version = 6;"
                           "DROP INDEX answers_by_session; DROP INDEX dead_letters_by_key;"
                           "ALTER TABLE endpoints DROP COLUMN previous_webhook_secret;"
                           "ALTER TABLE endpoints DROP COLUMN webhook_secret_changed_at;"
                           "ALTER TABLE answers DROP COLUMN session_key;",
                           nullptr, nullptr, nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  static void overwrite(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file, std::ios::trunc | std::ios::binary) << text;
  }

  TempFolder folder_;
  ManualClock clock_;
  config::Settings settings_;
  const model::SessionKey key_ = store::key_of("ann");
};

TEST_F(BackupTest, RestoredFolderIsThatOfTheBackupAndItsLogIsReadAgain) {
  const auto made = back_up();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->path.parent_path(), settings_.data_dir / "backups");
  EXPECT_EQ(made->path.filename(), "20270115T080000Z");
  const auto there = other_folder("other");
  const auto restored = restore(there, order(made->path), clock_);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->created_at, clock_.now());
  auto store = open_store(there, clock_);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_TRUE((*store)->was_clean()) << "a backup is no crash";
  EXPECT_EQ((**(*store)->sessions().load(key_)).version, 1);
  auto log = open_log(there, **store, clock_);
  ASSERT_TRUE(log) << log.error().message;
  const auto range = log->log->ranges()->front();
  EXPECT_EQ(range.end, 3);
  EXPECT_EQ(range.committed, 0);
}

TEST_F(BackupTest, BackupIsItsOwnersAloneAndHoldsNoKey) {
  const auto made = back_up("mine");
  ASSERT_TRUE(made) << made.error().message;
  for (const auto& entry : std::filesystem::directory_iterator(made->path)) {
    struct stat status {};
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U) << entry.path();
    EXPECT_NE(entry.path().filename(), "master.key");
  }
  struct stat status {};
  ASSERT_EQ(::stat(made->path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(BackupTest, NamesAreCheckedAndNeverTakenTwice) {
  ASSERT_TRUE(back_up("a.b-c_1"));
  EXPECT_EQ(back_up("a.b-c_1").error().code, Errc::conflict);
  for (const char* name : {"..", "../x", "a/b", ".hidden", "a b", "x.partial"}) {
    EXPECT_EQ(back_up(name).error().code, Errc::invalid_argument) << name;
  }
  EXPECT_EQ(back_up(std::string(101, 'x')).error().code, Errc::invalid_argument);
}

TEST_F(BackupTest, BackupThatIsEndedLeavesNothing) {
  BackupMaker maker(settings_, clock_, nullptr);
  maker.stop();
  EXPECT_EQ(maker.make("ended").error().code, Errc::unavailable);
  EXPECT_TRUE(std::filesystem::is_empty(maker.folder()));
}

TEST_F(BackupTest, LogOfKafkaIsRefused) {
  settings_.queue.driver = config::QueueDriver::kafka;
  EXPECT_EQ(back_up().error().code, Errc::not_supported);
}

TEST_F(BackupTest, StoreInPostgresIsLeftToItsOwnTools) {
  const auto made = back_up("of-a-file");
  ASSERT_TRUE(made) << made.error().message;
  settings_.store.driver = config::StoreDriver::postgres;
  const auto refused = back_up();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::not_supported);
  EXPECT_NE(refused.error().message.find("pg_dump"), std::string::npos) << refused.error().message;
  auto there = other_folder("there");
  std::filesystem::create_directory(there.data_dir);
  const auto restored = restore(there, {.backup = made->path, .key = {}}, clock_);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, Errc::not_supported);
  EXPECT_TRUE(std::filesystem::is_empty(there.data_dir));
}

TEST_F(BackupTest, FolderThatIsInUseIsNotRestoredInto) {
  const auto made = back_up();
  ASSERT_TRUE(made);
  EXPECT_EQ(restore(settings_, order(made->path), clock_).error().code, Errc::conflict);
  const auto there = other_folder("other");
  const auto running = DataFolder::open(there.data_dir);
  ASSERT_TRUE(running);
  EXPECT_EQ(restore(there, order(made->path), clock_).error().code, Errc::conflict);
}

TEST_F(BackupTest, DamagedBackupIsRefusedAndChangesNothing) {
  const auto made = back_up();
  ASSERT_TRUE(made);
  const auto there = other_folder("other");
  const auto refused = [&](Errc code) {
    const auto restored = restore(there, order(made->path), clock_);
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().code, code) << restored.error().message;
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(there.data_dir)) {
      left.push_back(entry.path().filename());
    }
    EXPECT_EQ(left, std::vector<std::string>{"lock"});
  };
  std::filesystem::copy_file(made->path / "log.db", folder_ / "log.db");
  {
    std::fstream file(made->path / "log.db", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(5'000);
    file << "x";
  }
  refused(Errc::invalid_argument);
  std::filesystem::remove(made->path / "log.db");
  refused(Errc::unavailable);
  std::filesystem::copy_file(folder_ / "log.db", made->path / "log.db");
  ASSERT_TRUE(restore(there, order(made->path), clock_));
  overwrite(made->path / "backup.json", "{}");
  EXPECT_EQ(restore(other_folder("third"), order(made->path), clock_).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(restore(other_folder("third"), order(folder_ / "none"), clock_).error().code,
            Errc::invalid_argument);
}

TEST_F(BackupTest, StoreThatHasSeenMoreThanTheLogHoldsIsRefused) {
  const auto before = back_up("before");
  ASSERT_TRUE(before);
  fill(0);  // three more records
  {
    auto store = open_store(settings_, clock_);
    auto unit = store::turn(key_, 1, 5);
    unit.after.position = {.epoch = 1, .partition = 0, .offset = 5};
    ASSERT_EQ(store::commit((*store)->committer(), std::move(unit)), store::Outcome::committed);
  }
  const auto after = back_up("after");
  ASSERT_TRUE(after);
  // As if the log had been copied first, by hand.
  std::filesystem::copy_file(before->path / "log.db", after->path / "log.db",
                             std::filesystem::copy_options::overwrite_existing);
  std::ifstream in(after->path / "backup.json");
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto replace = [&](const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
  };
  replace(after->manifest.files.at("log.db").sha256, before->manifest.files.at("log.db").sha256);
  overwrite(after->path / "backup.json", text);
  const auto restored = restore(other_folder("other"), order(after->path), clock_);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, Errc::conflict) << restored.error().message;
}

TEST_F(BackupTest, KeyIsNeededAndHasToBeTheStores) {
  const auto made = back_up();
  ASSERT_TRUE(made);
  const auto there = other_folder("other");
  EXPECT_EQ(restore(there, {.backup = made->path, .key = {}}, clock_).error().code,
            Errc::not_found);
  ASSERT_TRUE(restore(there, order(made->path), clock_));
  EXPECT_TRUE(std::filesystem::exists(there.data_dir / "master.key"));
  // One that is there already is taken if no other one is named.
  const auto third = other_folder("third");
  std::filesystem::create_directory(third.data_dir);
  std::filesystem::copy_file(settings_.data_dir / "master.key", third.data_dir / "master.key");
  EXPECT_TRUE(restore(third, {.backup = made->path, .key = {}}, clock_));
  const auto fourth = other_folder("fourth");
  std::filesystem::create_directory(fourth.data_dir);
  ASSERT_TRUE(store::Sealer::create_key_file(fourth.data_dir / "master.key"));
  EXPECT_EQ(restore(fourth, order(made->path), clock_).error().code, Errc::conflict);
}

TEST_F(BackupTest, RestoreThatWasNotFinishedIsBegunAgainAndNothingElseRuns) {
  const auto made = back_up();
  ASSERT_TRUE(made);
  const auto there = other_folder("other");
  {
    const auto folder = DataFolder::open(there.data_dir, DataFolder::Use::restore);
    ASSERT_TRUE(folder->begin_restore());
    overwrite(there.data_dir / "store.db", "half of it");
  }
  EXPECT_EQ(DataFolder::open(there.data_dir).error().code, Errc::conflict);
  ASSERT_TRUE(restore(there, order(made->path), clock_));
  EXPECT_TRUE(DataFolder::open(there.data_dir));
}

TEST_F(BackupTest, StoreOfAnOlderVersionIsBackedUpBeforeItIsMigrated) {
  const auto file = settings_.data_dir / "store.db";
  ASSERT_EQ(store::Database::stored_version(file).value(), store::schema_version);
  const auto backups = settings_.data_dir / "backups";
  EXPECT_FALSE(std::filesystem::exists(backups)) << "nothing was migrated so far";
  make_older(file);
  auto store = open_store(settings_, clock_);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE(std::filesystem::exists(backups));
  const auto made = std::filesystem::directory_iterator(backups)->path();
  const auto manifest = BackupManifest::read(made);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->reason, "migration");
  EXPECT_EQ(manifest->schema, store::schema_version - 1);
  EXPECT_EQ(store::Database::stored_version(made / "store.db").value(), store::schema_version - 1);
  EXPECT_TRUE(manifest->files.contains("log.db"));
  EXPECT_TRUE(restore(other_folder("other"), order(made), clock_));
}

}  // namespace
}  // namespace conversed::daemon
