#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::model {

// The part of a waiting follow-up beside the text and data of its event.
struct FollowUpPlan {
  std::string flow_id;                  // the Flow that runs; empty: the text is sent unchanged
  std::optional<Timestamp> expires_at;  // from this time on it is dropped
  bool of_journey = false;              // else of a Node; only the journey's are counted

  bool operator==(const FollowUpPlan&) const = default;
};

[[nodiscard]] nlohmann::json to_json(const FollowUpPlan& plan);
// Reads the JSON of `to_json`. Other JSON is `internal`: bad stored data.
[[nodiscard]] Result<FollowUpPlan> follow_up_plan_from(const nlohmann::json& value);

}  // namespace conversed::model
