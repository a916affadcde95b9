#pragma once

#include <string>
#include <vector>

#include "config/settings.h"

namespace conversed::config {

// Settings that are allowed but seldom meant, each with advice: for the log and the status.
[[nodiscard]] std::vector<std::string> warnings_of(const Settings& settings);

}  // namespace conversed::config
