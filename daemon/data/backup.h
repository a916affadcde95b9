#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "config/settings.h"
#include "queue/sqlite/sqlite_log.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::daemon {

// A backup is a folder with `store.db`, `log.db` where the log is embedded, and what is known of
// them in `backup.json`. The master key is not in it: a backup alone opens no secret.

// What `backup.json` says.
struct BackupManifest {
  struct File {
    std::int64_t bytes = 0;
    std::string sha256;  // 64 hex digits
  };
  std::string program;            // the version that made it
  std::int64_t schema = 0;        // of the store
  std::string reason;             // "asked" or "migration"
  std::string log;                // "sqlite": embedded, or "kafka": it is not in the backup
  model::Timestamp created_at{};  // to the second
  std::map<std::string, File> files;
  // Offsets by partition, below which the log had finished everything before the store was copied;
  // empty where nobody had the log open, so that its copy says so itself.
  std::vector<std::int64_t> committed;

  [[nodiscard]] std::int64_t bytes() const;

  // `invalid_argument` if the folder is no backup, or one of a format that this program does not
  // know.
  [[nodiscard]] static model::Result<BackupManifest> read(const std::filesystem::path& backup);
};

struct MadeBackup {
  std::filesystem::path path;
  BackupManifest manifest;
};

// Copies of the data folder's store and log, of states that belong together: the log finishes no
// record's deletion from before the store is copied until the log is, and the store is copied
// first. So all that the store has not seen is in the log; what it has seen is known by its
// position when it is read again. Thread-safe; one backup at a time.
class BackupMaker {
 public:
  // `log`: the embedded one, which must outlive it; null if nobody has its file open. `go_on`,
  // unless it is empty, is asked many times a second while one is made, on the thread that makes
  // it: false ends it.
  BackupMaker(const config::Settings& settings, const model::Clock& clock, queue::SqliteLog* log,
              std::function<bool()> go_on = {});

  // Writes the backup `name`, or one that is named by the time if it is empty, and checks it. It is
  // there as a whole or not at all. While the daemon works, that goes on; the write-ahead logs grow
  // until a file is copied. Errors: `invalid_argument` for a name that is more than letters,
  // digits, dots, hyphens and underscores; `conflict` if there is such a backup, or while one is
  // being made; `not_supported` if the store is in PostgreSQL, or the log is Kafka's, which can't
  // be copied as it was when the store was; `unavailable` (disk full, ended).
  [[nodiscard]] model::Result<MadeBackup> make(const std::string& name);

  // Of a store that is about to be migrated, whatever its log: nobody has the files open. The one
  // before it of the same schema goes: of a migration that fails again and again there is one.
  [[nodiscard]] model::Result<MadeBackup> make_before_migration(std::int64_t schema);

  // Ends the one that is being made, and every later one.
  void stop() { stop_.request_stop(); }

  // Where backups are.
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  [[nodiscard]] BackupManifest manifest_of(const char* reason, std::int64_t schema) const;
  [[nodiscard]] model::Result<MadeBackup> make(const std::string& name, BackupManifest manifest);
  [[nodiscard]] model::Result<void> copy_files(const std::filesystem::path& into,
                                               BackupManifest& manifest);
  [[nodiscard]] bool goes_on() const { return !stop_.stop_requested() && (!go_on_ || go_on_()); }

  const std::filesystem::path data_dir_;
  const std::filesystem::path folder_;
  const bool log_is_embedded_;
  const bool store_is_a_file_;
  const model::Clock& clock_;
  queue::SqliteLog* const log_;
  const std::function<bool()> go_on_;
  std::stop_source stop_;
  std::mutex making_;
};

// ---- For whoever writes or reads the files of a backup

// Copies a file to a new one (mode 0600, durable) and returns what it held. `unavailable`, naming
// the file; `conflict` if `to` exists. After an error there is no new file.
[[nodiscard]] model::Result<BackupManifest::File> copy_private(const std::filesystem::path& from,
                                                               const std::filesystem::path& to);

// Makes the names in a folder durable.
[[nodiscard]] model::Result<void> sync_folder(const std::filesystem::path& folder);

}  // namespace conversed::daemon
