#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flows/node.h"
#include "store/model/session.h"

// The place where a stored session waits. Stored state of a wrong shape waits nowhere and has no
// time-outs. Pure. Thread-safe.
// Kept by: TimeOuts.ReadsStoredStateOfAnyShape.
namespace conversed::flows {

// A Node at which a session waits.
struct Standing {
  std::string flow;          // its name
  std::int64_t version = 0;  // 0: the newest version at the next input
  std::string at;            // the Node's address
};

// The Nodes that entered other Flows, the outermost first, then the Node that waits. Empty if the
// next input starts the Flow at its beginning.
[[nodiscard]] std::vector<Standing> standings(const nlohmann::json& flow_state,
                                              const std::optional<model::Execution>& execution);

// The places of the Endpoint's Flow while a follow-up's Flow gets the next input.
[[nodiscard]] std::vector<Standing> standings_behind(const nlohmann::json& flow_state);

// The stored frames of an execution or a stored wait, the outermost first. Empty if their list has
// a wrong shape.
[[nodiscard]] std::vector<const nlohmann::json*> frames_of(const nlohmann::json& place);

// The places of an execution or a stored wait. Frames without a version have `own_version`.
[[nodiscard]] std::vector<Standing> standings_of(const nlohmann::json& place,
                                                 std::int64_t own_version);

// The ids of the timers of the session's questions: the question that gets the next input, and the
// question of the Endpoint's Flow that waits behind a follow-up's Flow. All other timers are
// obsolete.
[[nodiscard]] std::vector<std::string> time_outs_of(const model::Session& session);

[[nodiscard]] bool waits_for_time_out(const model::Session& session, const std::string& id);

// Whether it is the time-out of a question that waits behind a follow-up's Flow. If so, the
// Endpoint's Flow continues.
[[nodiscard]] bool is_time_out_behind(const model::Session& session, const std::string& id);

// When the time of a Node that waits for an event, or for more events, is over. The Node may wait
// behind a follow-up's Flow. Nothing if no such Node waits.
[[nodiscard]] std::optional<model::Timestamp> waits_for_event_until(
    const nlohmann::json& flow_state);
// The same of a Node that has events, and waits for more.
[[nodiscard]] std::optional<model::Timestamp> collects_until(const nlohmann::json& flow_state);
// Whether such a Node waits behind a follow-up's Flow. `takes_inject` tells whether an inject is
// for it.
[[nodiscard]] bool waits_for_event_behind(const nlohmann::json& flow_state);
// The end of a time-out's id.
[[nodiscard]] std::string_view time_out_suffix(Wait::For what);
// Whether the timer, by its id, is the time-out of a Node that waits for an event, or for more.
[[nodiscard]] bool is_time_out_of_event(std::string_view timer_id);
// Whether it is the time-out of a Node that has events, and waits for more.
[[nodiscard]] bool is_time_out_of_burst(std::string_view timer_id);

// Whether a `collect` of the session has this inject, and has not continued with it yet.
[[nodiscard]] bool keeps_event(const nlohmann::json& flow_state, const std::string& event_id);
// Whether a `collect` of the session has any. Such a session does not expire.
[[nodiscard]] bool keeps_events(const nlohmann::json& flow_state);

// Removes the time-out of a question that keeps waiting.
void forget_time_out(nlohmann::json& flow_state, const std::string& id);

}  // namespace conversed::flows
