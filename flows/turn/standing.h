#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/model/session.h"

namespace conversed::flows {

// A Node at which a session waits.
struct Standing {
  std::string flow;          // its name
  std::int64_t version = 0;  // 0: the newest at the next input
  std::string at;            // the Node's address
};

// The place at which the Endpoint's Flow waits while a follow-up's Flow gets the next input, like
// `standings`; empty if there is none. Pure; thread-safe.
[[nodiscard]] std::vector<Standing> standings_behind(const nlohmann::json& flow_state);

// The place at which a session waits: the Nodes that entered other Flows, outermost first, then the
// Node that waits. Empty if the next input starts the Flow at its beginning, or if the stored state
// can't be read. Pure; thread-safe.
[[nodiscard]] std::vector<Standing> standings(const nlohmann::json& flow_state,
                                              const std::optional<model::Execution>& execution);

}  // namespace conversed::flows
