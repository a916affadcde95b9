#pragma once

#include <filesystem>

#include "config/settings.h"
#include "daemon/data/backup.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::daemon {

struct RestoreOrder {
  std::filesystem::path backup;  // its folder
  std::filesystem::path key;     // a key file to take with it; empty: the one that is there already
  // Whether a backup without a log may be restored, as those from before a migration are where the
  // log is Kafka's: what Kafka's consumers finished after it has no effects then.
  enum class Log : std::uint8_t { needed, may_be_missing } log = Log::needed;
};

// Puts a backup into the data folder, whose daemon is stopped and which holds neither store nor
// log, checks that it is whole, that store and log belong together and that the master key opens
// all of the store's secrets, and has the log read again from where it was when the store was
// copied. An older store is migrated. What root makes in another user's folder is that user's.
// After an error the folder is as it was; after an end of the process it is refused by all but
// another restore.
//
// Errors: `invalid_argument` (no backup, damaged), `conflict` (a daemon runs, the folder is in use,
// another key, a newer program's store), `not_found` (no master key), `not_supported` (the settings
// keep the store in PostgreSQL), `unavailable`.
[[nodiscard]] model::Result<BackupManifest> restore(const config::Settings& settings,
                                                    const RestoreOrder& order,
                                                    const model::Clock& clock);

}  // namespace conversed::daemon
