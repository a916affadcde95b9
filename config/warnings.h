#pragma once

#include <string>
#include <vector>

#include "config/settings.h"

namespace conversed::config {

// What is allowed but seldom meant, each with what to do about it: for the log and the status.
[[nodiscard]] std::vector<std::string> warnings_of(const Settings& settings);

}  // namespace conversed::config
