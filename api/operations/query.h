#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/http.h"
#include "store/model/result.h"

namespace conversed::api {

// A whole number of the query; `absent` when it is not there. `invalid_argument`, naming the
// parameter and its bounds, for anything else.
[[nodiscard]] model::Result<std::int64_t> number_parameter(const Request& request,
                                                           std::string_view name, std::int64_t min,
                                                           std::int64_t max, std::int64_t absent);

// A parameter that has to be there and not empty.
[[nodiscard]] model::Result<std::string> required_parameter(const Request& request,
                                                            std::string_view name);

}  // namespace conversed::api
