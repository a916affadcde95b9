#pragma once

#include <string>
#include <vector>

#include "store/model/session.h"

// The time-outs of questions in a session's Flow state. Stored state of a wrong shape has none.
// Kept by: TimeOuts.ReadsStoredStateOfAnyShape. Pure; thread-safe.
namespace conversed::flows {

// The ids of the timers of the session's questions: of the one that gets the next input, and of one
// of the Endpoint's Flow that waits behind a follow-up's Flow. A timer that is not among them is
// over.
[[nodiscard]] std::vector<std::string> time_outs_of(const model::Session& session);

[[nodiscard]] bool waits_for_time_out(const model::Session& session, const std::string& id);

// Whether it is the time-out of a question that waits behind a follow-up's Flow. Then the
// Endpoint's Flow continues with it.
[[nodiscard]] bool is_time_out_behind(const model::Session& session, const std::string& id);

// The question waits on, without a time-out.
void forget_time_out(nlohmann::json& flow_state, const std::string& id);

// The id of the timer of the question at which an execution ends; the same in each rerun. An
// execution that a time-out began continues its count, so that ids do not grow.
[[nodiscard]] std::string time_out_id(const model::Execution& execution);

}  // namespace conversed::flows
