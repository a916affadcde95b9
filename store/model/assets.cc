#include "store/model/assets.h"

#include <nlohmann/json.hpp>

namespace conversed::model {

Result<Journey> journey_from(const nlohmann::json& definition) {
  using std::chrono::milliseconds;
  try {
    Journey journey;
    journey.after = milliseconds(definition.at("afterMs").get<std::int64_t>());
    if (definition.contains("expiresAfterMs")) {
      journey.expires_after = milliseconds(definition.at("expiresAfterMs").get<std::int64_t>());
    }
    if (definition.contains("quietHours")) {
      const auto& quiet = definition.at("quietHours");
      journey.quiet_hours = QuietHours{.from = quiet.at("fromMinute").get<int>(),
                                       .to = quiet.at("toMinute").get<int>(),
                                       .timezone = quiet.at("timezone").get<std::string>()};
    }
    journey.max_per_session = definition.at("maxPerSession").get<int>();
    journey.max_per_day = definition.value("maxPerDay", 0);
    return journey;
  } catch (const nlohmann::json::exception&) {
    return fail(Errc::internal, "a stored journey can't be read");
  }
}

}  // namespace conversed::model
