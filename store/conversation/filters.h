#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "store/conversation/dead_letters.h"
#include "store/conversation/deliveries.h"

// The filters of jobs on dead letters and deliveries, as JSON for the job's `data`. Empty members
// are left out.
namespace conversed::store {

[[nodiscard]] nlohmann::json to_json(const DeadLetters::Filter& filter);
[[nodiscard]] nlohmann::json to_json(const Deliveries::Filter& filter);

// Reads the JSON of `to_json`. `internal` for other JSON: bad stored data.
[[nodiscard]] model::Result<DeadLetters::Filter> dead_letter_filter_from(
    const std::string& project_id, const nlohmann::json& value);
[[nodiscard]] model::Result<Deliveries::Filter> delivery_filter_from(const std::string& project_id,
                                                                     const nlohmann::json& value);

}  // namespace conversed::store
