#pragma once

#include <memory>

#include "config/settings.h"
#include "queue/sqlite_log.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/store.h"

namespace conversed::daemon {

// The embedded drivers: log and store as files in the data folder, which the caller has locked.
// `clock` must outlive what is returned.
[[nodiscard]] model::Result<std::unique_ptr<queue::SqliteLog>> open_embedded_log(
    const config::Settings& settings, const model::Clock& clock);
[[nodiscard]] model::Result<std::unique_ptr<store::Store>> open_embedded_store(
    const config::Settings& settings, const model::Clock& clock);

}  // namespace conversed::daemon
