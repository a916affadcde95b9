#pragma once

#include <nlohmann/json_fwd.hpp>

#include "api/openapi/schemas.h"
#include "flows/problem.h"

// What is wrong with a bundle, as the management routes say it.
namespace conversed::api {

// A list of {"file","line","column","path","message"}.
[[nodiscard]] nlohmann::json to_json(const flows::Problems& problems);

// One of them.
[[nodiscard]] openapi::Schema problem_in_file();

}  // namespace conversed::api
