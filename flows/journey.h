#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "store/model/result.h"

// Makes the stored journey and its Flow from `proactive.journey` of a bundle. Pure; thread-safe.
namespace conversed::flows {

inline constexpr int default_per_session = 1;  // follow-ups of the journey

// The minute of `HH:MM`, 00:00 to 23:59. Nothing for any other text.
[[nodiscard]] std::optional<int> minute_of_day(std::string_view text);

// The journey of the bundle's checked `proactive` part. If that is null, a journey for a project
// with the primary locale `locale`. All defaults are filled in. `afterMs`, `expiresAfterMs`, and
// `fromMinute` and `toMinute` of the quiet hours stand beside the texts (model::journey_from reads
// them).
[[nodiscard]] nlohmann::json complete_journey(const nlohmann::json& proactive,
                                              std::string_view locale);

// The definition of a Flow of this name that says the journey's text. `invalid_argument` if the
// text is not a valid template.
[[nodiscard]] model::Result<nlohmann::json> follow_up_flow(const nlohmann::json& journey,
                                                           const std::string& name);

}  // namespace conversed::flows
