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
#include "queue/file/file_log.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::daemon {

// A backup is a folder with `store.db`, `log/` (if the log is embedded) and `backup.json`, which
// describes their files. The master key is not part of it: a backup alone does not open any secret.

struct BackupManifest {
  struct File {
    std::int64_t bytes = 0;
    std::string sha256;  // 64 hex digits
  };
  std::string program;            // the version of the program that made the backup
  std::int64_t schema = 0;        // of the store
  std::string reason;             // "asked" or "migration"
  std::string log;                // "embedded", or "kafka": it is not in the backup
  model::Timestamp created_at{};  // to the second
  std::map<std::string, File> files{};
  // By partition, the offset below which all records were finished before the store was copied.
  // Empty if the log was not open: then its copy has the offset.
  std::vector<std::int64_t> committed{};

  [[nodiscard]] std::int64_t bytes() const;

  // `invalid_argument` if the folder is no backup, or has an unknown format.
  [[nodiscard]] static model::Result<BackupManifest> read(const std::filesystem::path& backup);
};

struct MadeBackup {
  std::filesystem::path path;
  BackupManifest manifest;
};

// Copies the data folder's store and log in states that belong together. The store is copied first.
// From before that copy until the log is copied, the log deletes no finished record. So the log's
// copy has every record that the store's copy has not seen. Records that it has seen are recognized
// by their position when they are read again. `backup.json` says how far the log was finished, and
// a restore reads the log from there: older events of sessions that retention or erasure removed
// would run again. Kept by: BackupTest.RestoredLogGoesOnWhereItWasWhenTheStoreWasCopied,
// BackupTest.RestoredFolderIsThatOfTheBackupAndItsLogIsReadAgain.
//
// Thread-safe; one backup at a time.
class BackupMaker {
 public:
  // `log`: the embedded log, which must outlive it; null if it is not open. `go_on`, if not
  // empty, is called many times a second by the thread that makes a backup. False ends the backup.
  BackupMaker(const config::Settings& settings, const model::Clock& clock, queue::FileLog* log,
              std::function<bool()> go_on = {});

  // Writes the backup `name` and checks it. Without a name, the time names it; a further backup of
  // that second gets a number. The backup appears as a whole or not at all. The daemon works on;
  // the write-ahead logs grow until a file is copied. Errors: `invalid_argument` for a name with
  // other characters than letters, digits, dots, hyphens and underscores; `conflict` if the backup
  // exists, or while one is being made; `not_supported` with PostgreSQL or Kafka, whose data can't
  // be copied as of one moment; `unavailable` (disk full, ended).
  [[nodiscard]] model::Result<MadeBackup> make(const std::string& name);

  // Makes a backup before a migration of the store, with any log. The files must not be open. It
  // replaces the earlier backup of the same schema, so that a migration that fails repeatedly
  // leaves one.
  [[nodiscard]] model::Result<MadeBackup> make_before_migration(std::int64_t schema);

  // Ends the running backup, and every later one.
  void stop() { stop_.request_stop(); }

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  [[nodiscard]] BackupManifest manifest_of(const char* reason, std::int64_t schema) const;
  [[nodiscard]] std::string free_name() const;
  // `asked`: the backup's name; empty: a free one.
  [[nodiscard]] model::Result<MadeBackup> make(const std::string& asked, BackupManifest manifest);
  [[nodiscard]] model::Result<void> copy_files(const std::filesystem::path& into,
                                               BackupManifest& manifest);
  [[nodiscard]] bool goes_on() const { return !stop_.stop_requested() && (!go_on_ || go_on_()); }

  const std::filesystem::path data_dir_;
  const std::filesystem::path folder_;
  const bool log_is_embedded_;
  const bool store_is_a_file_;
  const model::Clock& clock_;
  queue::FileLog* const log_;
  const std::function<bool()> go_on_;
  std::stop_source stop_;
  std::mutex making_;
};

// ---- For backup.cc and restore.cc

// Copies a file or a pipe to a new file (mode 0600 from the start, durable) and returns its size
// and digest. `unavailable`, with the failing file's name; `conflict` if `to` exists. After an
// error there is no new file.
[[nodiscard]] model::Result<BackupManifest::File> copy_private(const std::filesystem::path& from,
                                                               const std::filesystem::path& to);

// Makes a file's bytes, or the entries of a folder, durable (fsync).
[[nodiscard]] model::Result<void> make_durable(const std::filesystem::path& path);

}  // namespace conversed::daemon
