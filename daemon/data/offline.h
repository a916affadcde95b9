#pragma once

#include <cstdint>
#include <string>

#include "config/settings.h"
#include "store/model/clock.h"
#include "store/model/result.h"

// Commands of `conversed` on a data folder whose daemon is stopped.
namespace conversed::daemon {

struct FirstOrganisation {
  std::string name;
  std::string admin_email;
  std::string admin_password;
};

// `conversed init`: makes the data folder, the master key, and the first organisation with its
// administrator (projectAdmin, userAdmin, platformAdmin). `conflict` while a daemon runs on the
// folder, or if an organisation exists: then nothing changes. Returns the organisation's id.
[[nodiscard]] model::Result<std::string> init(const config::Settings& settings,
                                              const FirstOrganisation& organisation,
                                              const model::Clock& clock);

// `conversed new-epoch`: records that are appended from now on count as new. Clears the marks of
// appended timers and calls, whose events are not in the new log. Every daemon has to be stopped:
// the error names the running daemons. Returns the new epoch.
[[nodiscard]] model::Result<std::int64_t> open_new_epoch(const config::Settings& settings,
                                                         const model::Clock& clock);

}  // namespace conversed::daemon
