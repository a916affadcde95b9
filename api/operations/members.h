#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "store/model/result.h"

namespace conversed::api {

// A member that is a list of strings: empty when absent or null. `invalid_argument` for anything
// else.
[[nodiscard]] model::Result<std::vector<std::string>> text_list_member(const nlohmann::json& object,
                                                                       const char* name);

// A member that is true or false: false when absent or null.
[[nodiscard]] model::Result<bool> flag_member(const nlohmann::json& object, const char* name);

}  // namespace conversed::api
