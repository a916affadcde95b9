#pragma once

#include <string>

#include "config/settings.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::daemon {

struct FirstOrganisation {
  std::string name;
  std::string admin_email;
  std::string admin_password;
};

// `conversed init`: makes the data folder, the master key, and the first organisation with its
// administrator (projectAdmin, userAdmin, platformAdmin). `conflict` while a daemon runs on the
// folder, or if there is an organisation already: nothing is changed then. Returns the
// organisation's id.
[[nodiscard]] model::Result<std::string> init(const config::Settings& settings,
                                              const FirstOrganisation& organisation,
                                              const model::Clock& clock);

}  // namespace conversed::daemon
