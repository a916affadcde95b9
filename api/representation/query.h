#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/http/http.h"
#include "store/model/result.h"

namespace conversed::api {

// A whole number of the query; `absent` when it is not there. `invalid_argument`, naming the
// parameter and its bounds, for anything else.
[[nodiscard]] model::Result<std::int64_t> number_parameter(const Request& request,
                                                           std::string_view name, std::int64_t min,
                                                           std::int64_t max, std::int64_t absent);

// Items of a page of a list: `limit` is 1 to this, or the default.
inline constexpr std::int64_t max_page_limit = 100;
inline constexpr std::int64_t default_page_limit = 25;
[[nodiscard]] model::Result<std::int64_t> limit_parameter(const Request& request);

// How long a client may have its answer held back, in seconds.
inline constexpr std::int64_t max_wait_seconds = 30;
[[nodiscard]] model::Result<std::int64_t> wait_parameter(const Request& request);

// A parameter that has to be there and not empty.
[[nodiscard]] model::Result<std::string> required_parameter(const Request& request,
                                                            std::string_view name);

}  // namespace conversed::api
