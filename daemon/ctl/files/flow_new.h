#pragma once

#include <string>

namespace conversed::ctl {

// `conversectl flow new`: writes a small bundle, and a test file beside it. Overwrites no file.
// Returns the exit code.
int flow_new(const std::string& file, bool json);

}  // namespace conversed::ctl
