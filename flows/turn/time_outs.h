#pragma once

#include <string>
#include <vector>

#include "store/model/session.h"

// The time-outs of questions, as a session's Flow state names them. Pure; thread-safe. Stored state
// of another shape than it should have waits for none.
namespace conversed::flows {

// The ids of the timers that the session's questions wait for: of the one that gets the next input,
// and of one of the Endpoint's Flow that a follow-up's Flow has come before. A timer that is not
// among them any more is over, whatever made it so.
[[nodiscard]] std::vector<std::string> time_outs_of(const model::Session& session);

[[nodiscard]] bool waits_for_time_out(const model::Session& session, const std::string& id);

// Whether it is the time-out of a question that a follow-up's Flow has come before: the Endpoint's
// Flow goes on with it.
[[nodiscard]] bool is_time_out_behind(const model::Session& session, const std::string& id);

// The question goes on waiting, for as long as it takes.
void forget_time_out(nlohmann::json& flow_state, const std::string& id);

// The id of the timer of a question that an execution ends at: constant over reruns. An execution
// that a time-out began counts on from that, so that ids do not grow however often nobody answers.
[[nodiscard]] std::string time_out_id(const model::Execution& execution);

}  // namespace conversed::flows
