#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::model {

// What a follow-up that waits for its time has to become, beside the text and data of its event.
struct FollowUpPlan {
  std::string flow_id;                  // the Flow that runs; empty: the text is said as it stands
  std::optional<Timestamp> expires_at;  // from here on it comes too late, and is dropped
  bool of_journey = false;              // else a Node asked for it; only the former is counted

  bool operator==(const FollowUpPlan&) const = default;
};

[[nodiscard]] nlohmann::json to_json(const FollowUpPlan& plan);
// What `to_json` made; anything else is `internal`: bad stored data.
[[nodiscard]] Result<FollowUpPlan> follow_up_plan_from(const nlohmann::json& value);

}  // namespace conversed::model
