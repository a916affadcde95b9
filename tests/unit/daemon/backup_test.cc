#include "daemon/data/backup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <future>
#include <iterator>
#include <nlohmann/json.hpp>

#include "daemon/data/data_folder.h"
#include "daemon/data/restore.h"
#include "daemon/data/storage.h"
#include "store/secrets/sealer.h"
#include "store/sql/sql.h"
#include "tests/unit/daemon/world.h"
#include "tests/unit/store/fixture.h"

namespace conversed::daemon {
namespace {

using model::Errc;
using tests::ManualClock;
using tests::TempFolder;

// A data folder with a store and a log, as a daemon leaves it.
class BackupTest : public testing::Test {
 protected:
  static void make_private(const std::filesystem::path& folder) {
    std::filesystem::create_directory(folder);
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  }
  void SetUp() override {
    settings_.data_dir = folder_ / "data";
    settings_.queue.partitions = 1;
    make_private(settings_.data_dir);
    fill(1);
  }

  // Fills a log of three records. The store has the effects of the records below `seen`.
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
      auto commit = store::turn(key_, offset, offset);
      commit.after.position = {.epoch = 1, .partition = 0, .offset = offset};
      ASSERT_EQ(store::commit_now((*store)->committer(), std::move(commit)),
                store::Outcome::committed);
    }
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

  void add_secret(const std::string& project_name) {
    auto store = open_store(settings_, clock_);
    ASSERT_TRUE(store) << store.error().message;
    const auto made = (*store)->accounts().create_organisation(
        project_name, {.email = project_name + "@example.com"});
    ASSERT_TRUE(made) << made.error().message;
    model::Bundle bundle;
    bundle.project_name = project_name;
    bundle.locales = {"en"};
    bundle.flows.push_back({"Main", {{"name", "Main"}, {"nodes", nlohmann::json::array()}}});
    bundle.connections = {{"crm", "httpBearer", {{"token", "secret"}}, {{"token", "${T}"}}}};
    const auto imported = (*store)->assets().import_bundle(made->id, bundle);
    ASSERT_TRUE(imported) << imported.error().message;
  }

  void commit_log(OpenedLog& log, std::int64_t offset) {
    struct Ignoring final : queue::Listener {
      queue::Result<void> on_assigned(
          std::span<const queue::PartitionRange> /*partitions*/) override {
        return {};
      }
      void on_revoked(std::span<const std::int32_t> /*partitions*/) override {}
    } listener;
    auto consumer = log.log->subscribe(listener);
    ASSERT_TRUE(consumer);
    ASSERT_EQ((*consumer)->poll(10, std::chrono::seconds(10))->size(), 3U);
    const std::vector<model::Position> at{{.epoch = 1, .partition = 0, .offset = offset}};
    ASSERT_TRUE((*consumer)->commit(at));
  }

  std::int64_t committed_after_restore(const char* name, const std::filesystem::path& backup) {
    const auto there = other_folder(name);
    const auto restored = restore(there, order(backup), clock_);
    EXPECT_TRUE(restored) << restored.error().message;
    auto store = open_store(there, clock_);
    auto log = open_log(there, **store, clock_);
    return log->log->ranges()->front().committed;
  }

  // Makes a store of schema version 0, for which every migration is still to run.
  static void make_older(const std::filesystem::path& file) {
    std::filesystem::remove(file);
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db,
                           "CREATE TABLE schema_version (version BIGINT PRIMARY KEY,"
                           " min_reader BIGINT NOT NULL);"
                           "INSERT INTO schema_version (version, min_reader) VALUES (0, 0);",
                           nullptr, nullptr, nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  static void overwrite(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file, std::ios::trunc | std::ios::binary) << text;
  }

  static constexpr const char* segment = "log/000000000001";
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
  EXPECT_EQ((**(*store)->first().sessions().load(key_)).version, 1);
  auto log = open_log(there, **store, clock_);
  ASSERT_TRUE(log) << log.error().message;
  const auto range = log->log->ranges()->front();
  EXPECT_EQ(range.end, 3);
  EXPECT_EQ(range.committed, 0);
}

TEST_F(BackupTest, BackupsOfOneSecondGetNumbers) {
  for (const char* name : {"20270115T080000Z", "20270115T080000Z-2", "20270115T080000Z-3"}) {
    const auto made = back_up();
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->path.filename(), name);
  }
}

// A removed session no longer shows which of its records are finished.
TEST_F(BackupTest, RestoredLogGoesOnWhereItWasWhenTheStoreWasCopied) {
  std::filesystem::path path;
  {
    auto store = open_store(settings_, clock_);
    auto log = open_log(settings_, **store, clock_);
    ASSERT_TRUE(log) << log.error().message;
    commit_log(*log, 0);
    const auto pruned = (*store)->committer().write_and_wait([](store::Writer& writer) {
      writer.connection().script(
          "DELETE FROM deliveries; DELETE FROM outputs;"
          "DELETE FROM sessions");
      return model::Result<void>();
    });
    ASSERT_TRUE(pruned) << pruned.error().message;
    const auto made = BackupMaker(settings_, clock_, log->embedded).make("");
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->manifest.committed, std::vector<std::int64_t>{1});
    path = made->path;
    log->log->stop();
  }
  EXPECT_EQ(committed_after_restore("same", path), 1) << "a finished event would run again";
  // Sets the manifest as if the log had been copied at an earlier committed position.
  std::ifstream in(path / "backup.json");
  auto document = nlohmann::json::parse(in);
  document["committed"] = {0};
  overwrite(path / "backup.json", document.dump());
  EXPECT_EQ(committed_after_restore("earlier", path), 0);
}

TEST_F(BackupTest, BackupIsPrivateAndHoldsNoKey) {
  const auto made = back_up("mine");
  ASSERT_TRUE(made) << made.error().message;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(made->path)) {
    struct stat status {};
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, entry.is_directory() ? 0700U : 0600U) << entry.path();
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

TEST_F(BackupTest, StoppedBackupLeavesNoFiles) {
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
  make_private(there.data_dir);
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
  std::filesystem::copy_file(made->path / segment, folder_ / "segment");
  {
    std::fstream file(made->path / segment, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(100);
    file << "x";
  }
  refused(Errc::invalid_argument);
  std::filesystem::remove(made->path / segment);
  refused(Errc::unavailable);
  std::filesystem::copy_file(folder_ / "segment", made->path / segment);
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
    auto commit = store::turn(key_, 1, 5);
    commit.after.position = {.epoch = 1, .partition = 0, .offset = 5};
    ASSERT_EQ(store::commit_now((*store)->committer(), std::move(commit)),
              store::Outcome::committed);
  }
  const auto after = back_up("after");
  ASSERT_TRUE(after);
  // Combines the older log with the newer store, as a copy by hand in the wrong order does.
  std::filesystem::copy_file(before->path / segment, after->path / segment,
                             std::filesystem::copy_options::overwrite_existing);
  std::ifstream in(after->path / "backup.json");
  auto document = nlohmann::json::parse(in);
  document["files"][segment] = {{"bytes", before->manifest.files.at(segment).bytes},
                                {"sha256", before->manifest.files.at(segment).sha256}};
  overwrite(after->path / "backup.json", document.dump());
  const auto restored = restore(other_folder("other"), order(after->path), clock_);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, Errc::conflict) << restored.error().message;
}

TEST_F(BackupTest, RestoreNeedsTheKeyOfTheStore) {
  const auto made = back_up();
  ASSERT_TRUE(made);
  const auto there = other_folder("other");
  EXPECT_EQ(restore(there, {.backup = made->path, .key = {}}, clock_).error().code,
            Errc::not_found);
  ASSERT_TRUE(restore(there, order(made->path), clock_));
  EXPECT_TRUE(std::filesystem::exists(there.data_dir / "master.key"));
  // Without a named key the restore takes the key that is in the folder.
  const auto third = other_folder("third");
  make_private(third.data_dir);
  std::filesystem::copy_file(settings_.data_dir / "master.key", third.data_dir / "master.key");
  EXPECT_TRUE(restore(third, {.backup = made->path, .key = {}}, clock_));
  const auto fourth = other_folder("fourth");
  make_private(fourth.data_dir);
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
  EXPECT_FALSE(std::filesystem::exists(backups)) << "no migration has run yet";
  make_older(file);
  auto store = open_store(settings_, clock_);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE(std::filesystem::exists(backups));
  const auto made = std::filesystem::directory_iterator(backups)->path();
  const auto manifest = BackupManifest::read(made);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->reason, "migration");
  EXPECT_EQ(manifest->schema, 0);
  EXPECT_EQ(store::Database::stored_version(made / "store.db").value(), 0);
  EXPECT_TRUE(manifest->files.contains(segment));
  EXPECT_TRUE(restore(other_folder("other"), order(made), clock_));
  // Repeated migrations that fail keep one backup, so that they don't fill the disk.
  BackupMaker maker(settings_, clock_, nullptr);
  ASSERT_TRUE(maker.make_before_migration(manifest->schema));
  clock_.advance(std::chrono::seconds(1));
  const auto last = maker.make_before_migration(manifest->schema);
  ASSERT_TRUE(last) << last.error().message;
  std::vector<std::filesystem::path> kept;
  for (const auto& entry : std::filesystem::directory_iterator(backups)) {
    kept.push_back(entry.path());
  }
  EXPECT_EQ(kept, std::vector<std::filesystem::path>{last->path});
}

TEST_F(BackupTest, MistypedKeyLeavesNothingInTheWayOfTheNextRestore) {
  const auto made = back_up();
  ASSERT_TRUE(made);
  const auto there = other_folder("other");
  const auto restored =
      restore(there, {.backup = made->path, .key = folder_ / "mistyped.key"}, clock_);
  EXPECT_EQ(restored.error().code, Errc::unavailable);
  EXPECT_FALSE(std::filesystem::exists(there.data_dir / "master.key"));
  EXPECT_TRUE(restore(there, order(made->path), clock_));
}

TEST_F(BackupTest, CopyOfAKeyIsPrivateFromTheStart) {
  const auto pipe = folder_ / "pipe";
  const auto copy = folder_ / "copy.key";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0644), 0);
  auto copied = std::async(std::launch::async, [&] { return copy_private(pipe, copy); });
  int writer = -1;
  const auto is_read = [&] {
    writer = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return writer >= 0;
  };
  ASSERT_TRUE(eventually(is_read)) << copied.get().error().message;
  struct stat status {};
  EXPECT_TRUE(eventually([&] { return ::stat(copy.c_str(), &status) == 0; }));
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(::write(writer, "the ", 4), 4);
  EXPECT_EQ(::write(writer, "key", 3), 3);
  ::close(writer);
  const auto file = copied.get();
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->bytes, 7);
  std::ifstream in(copy);
  std::string text;
  std::getline(in, text);
  EXPECT_EQ(text, "the key");
}

TEST_F(BackupTest, RestoreTakesItsKeyFromAPipe) {
  const auto made = back_up();
  ASSERT_TRUE(made);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  std::ifstream key(order(made->path).key, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(key), std::istreambuf_iterator<char>()};
  EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  const auto restored =
      restore(other_folder("other"),
              {.backup = made->path, .key = "/dev/fd/" + std::to_string(ends[0])}, clock_);
  ::close(ends[0]);
  EXPECT_TRUE(restored) << restored.error().message;
}

TEST_F(BackupTest, FailedCopyNamesTheFileThatFailedAndRemovesOnlyItsOwn) {
  const auto copy = folder_ / "copy.key";
  for (const auto& source : {folder_ / "mistyped.key", settings_.data_dir}) {
    const auto failed = copy_private(source, copy);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Errc::unavailable);
    EXPECT_TRUE(failed.error().message.starts_with(source.string() + " can't be read: "))
        << failed.error().message;
    EXPECT_FALSE(std::filesystem::exists(copy));
  }
  std::filesystem::create_directory(copy);
  const auto failed = copy_private(folder_ / "mistyped.key", copy);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::conflict);
  EXPECT_TRUE(failed.error().message.starts_with(copy.string() + " can't be made: "))
      << failed.error().message;
  EXPECT_TRUE(std::filesystem::exists(copy)) << "the file of another copy";
}

TEST_F(BackupTest, KeyThatOpensOnlySomeSecretsIsRefused) {
  const auto own_key = settings_.data_dir / "master.key";
  const auto old_key = folder_ / "old.key";
  std::filesystem::copy_file(own_key, old_key);
  // An interrupted rotation leaves two keys, and secrets sealed by either key.
  add_secret("Shop");
  ASSERT_TRUE(store::Sealer::open(own_key)->add_key());
  add_secret("Side");
  const auto made = back_up();
  ASSERT_TRUE(made) << made.error().message;
  const auto there = other_folder("other");
  const auto restored = restore(there, {.backup = made->path, .key = old_key}, clock_);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, Errc::conflict) << restored.error().message;
  EXPECT_TRUE(restore(there, {.backup = made->path, .key = own_key}, clock_));
}

TEST_F(BackupTest, WrongKeyIsRefusedByTheNameThatWasTyped) {
  add_secret("Shop");
  const auto made = back_up();
  ASSERT_TRUE(made) << made.error().message;
  const auto wrong = folder_ / "wrong.key";
  ASSERT_TRUE(store::Sealer::create_key_file(wrong));
  const auto there = other_folder("other");
  const auto restored = restore(there, {.backup = made->path, .key = wrong}, clock_);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, Errc::conflict);
  EXPECT_TRUE(restored.error().message.starts_with("the master key " + wrong.string() +
                                                   " does not open 2 of the store's secrets; give "
                                                   "--key the key file of the time of the backup"))
      << restored.error().message;
  EXPECT_FALSE(std::filesystem::exists(there.data_dir / "master.key"));
  // A mistyped name is told as such, although the folder has a key.
  make_private(there.data_dir);
  std::filesystem::copy_file(wrong, there.data_dir / "master.key");
  const auto mistyped = restore(there, {.backup = made->path, .key = folder_ / "nope"}, clock_);
  ASSERT_FALSE(mistyped);
  EXPECT_TRUE(mistyped.error().message.starts_with((folder_ / "nope").string() + " can't be read"))
      << mistyped.error().message;
}

TEST_F(BackupTest, FilesThatRootRestoresBelongToTheFoldersOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "root's alone";
  const auto made = back_up();
  ASSERT_TRUE(made);
  const auto there = other_folder("other");
  make_private(there.data_dir);
  constexpr uid_t nobody = 65534;
  ASSERT_EQ(::chown(there.data_dir.c_str(), nobody, nobody), 0);
  ASSERT_TRUE(restore(there, order(made->path), clock_));
  for (const auto& entry : std::filesystem::directory_iterator(there.data_dir)) {
    struct stat status {};
    ASSERT_EQ(::lstat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, nobody) << entry.path();
  }
}

TEST_F(BackupTest, MissingStoreOfAUsedLogIsRefused) {
  const auto remove_store = [&] {
    for (const char* name : {"store.db", "store.db-wal", "store.db-shm"}) {
      std::filesystem::remove(settings_.data_dir / name);
    }
  };
  const auto expect_refused = [&](const char* why) {
    SCOPED_TRACE(why);
    const auto store = open_store(settings_, clock_);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, Errc::conflict);
    EXPECT_NE(store.error().message.find("the store is missing, but the log has events"),
              std::string::npos)
        << store.error().message;
    EXPECT_FALSE(std::filesystem::exists(settings_.data_dir / "store.db"));
  };
  remove_store();
  expect_refused("the log has records");
  std::filesystem::rename(settings_.data_dir / "log", settings_.data_dir / "old log");
  {
    // A log without records may be of a start that was cut short.
    auto store = open_store(settings_, clock_);
    ASSERT_TRUE(store) << store.error().message;
    auto log = open_log(settings_, **store, clock_);
    ASSERT_TRUE(log) << log.error().message;
    log->log->stop();
  }
  remove_store();
  {
    auto store = open_store(settings_, clock_);
    ASSERT_TRUE(store) << store.error().message;
    auto log = open_log(settings_, **store, clock_);
    ASSERT_TRUE(log) << log.error().message;
    const auto epoch = log->log->new_epoch(1);
    ASSERT_TRUE(epoch) << epoch.error().message;
    EXPECT_EQ(*epoch, 2);
    log->log->stop();
  }
  remove_store();
  expect_refused("the log has a second epoch");
}

TEST_F(BackupTest, AStoreIsNotMigratedWhenItsOpenerGivesUp) {
  const auto file = settings_.data_dir / "store.db";
  make_older(file);
  int asked = 0;
  const auto store = open_store(settings_, clock_, store::PostgresSettings::Place::shared,
                                [&] { return ++asked < 2; });
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Errc::unavailable);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(store::Database::stored_version(file).value(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(settings_.data_dir / "backups"));
}

}  // namespace
}  // namespace conversed::daemon
