#pragma once

#include <filesystem>

#include "config/settings.h"
#include "daemon/data/backup.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::daemon {

struct RestoreOrder {
  std::filesystem::path backup;  // its folder
  std::filesystem::path key;     // the key file to restore; empty: the folder has its key
  // Whether a backup without a log may be restored, such as one that was made before a migration
  // with Kafka. The effects of events that were finished after such a backup are lost.
  enum class Log : std::uint8_t { needed, may_be_missing } log = Log::needed;
};

// Puts a backup into the data folder, whose daemon is stopped and which holds neither store nor
// log. Checks that the backup is whole, that store and log belong together and that the master key
// opens all secrets of the store. The log is read again from the position that it had when the
// store was copied. An older store is migrated. Files that root makes are given to the folder's
// owner. After an error the folder is as before. After a crash only another restore can open it.
// Kept by: BackupTest.DamagedBackupIsRefusedAndChangesNothing,
// BackupTest.RestoreThatWasNotFinishedIsBegunAgainAndNothingElseRuns.
//
// Errors: `invalid_argument` (not a backup, or damaged), `conflict` (a daemon runs, the folder is
// in use, another key, a newer program's store), `not_found` (no master key), `not_supported` (the
// settings keep the store in PostgreSQL), `unavailable`.
[[nodiscard]] model::Result<BackupManifest> restore(const config::Settings& settings,
                                                    const RestoreOrder& order,
                                                    const model::Clock& clock);

}  // namespace conversed::daemon
