#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/model/session.h"

namespace conversed::flows {

// A Node at which a session stands.
struct Standing {
  std::string flow;          // its name
  std::int64_t version = 0;  // 0: the newest, as the next input takes it
  std::string at;            // the Node's address
};

// Where the Endpoint's Flow waits behind a follow-up Flow that has the user's ear, as `standings`
// says it; empty: nowhere. Pure; thread-safe.
[[nodiscard]] std::vector<Standing> standings_behind(const nlohmann::json& flow_state);

// Where a session stands, by its stored Flow state and execution: the Nodes that entered other
// Flows, outermost first, and last the one that waits. Empty: the next input begins at the Flow's
// start, or what is stored can't be read. Pure; thread-safe.
[[nodiscard]] std::vector<Standing> standings(const nlohmann::json& flow_state,
                                              const std::optional<model::Execution>& execution);

}  // namespace conversed::flows
