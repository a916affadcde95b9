#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "store/model/result.h"

// What set-up makes of the `proactive.journey` of a bundle. Pure; thread-safe.
namespace conversed::flows {

// The journey with every default filled in, and `afterMs`, `expiresAfterMs`, and `fromMinute` and
// `toMinute` of its quiet hours beside the texts (model::journey_from reads them): that of the
// bundle's checked `proactive` part, or, if that is null, a journey for a project whose primary
// locale is `locale`.
[[nodiscard]] nlohmann::json complete_journey(const nlohmann::json& proactive,
                                              std::string_view locale);

// The definition of a Flow of this name, as its author would write it, that says what the journey
// says. `invalid_argument` if the journey's text is no template that can be used.
[[nodiscard]] model::Result<nlohmann::json> follow_up_flow(const nlohmann::json& journey,
                                                           const std::string& name);

}  // namespace conversed::flows
