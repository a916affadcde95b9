#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "flows/tools/rehearsal.h"
#include "flows/tools/trace.h"

namespace conversed::flows::tools {

// The effects that an event would have.
struct Trial {
  // The effects until a Turn failed or the try was ended. `error` has the reason. It is empty if
  // neither happened.
  Rehearsal::Done done;
  nlohmann::json calls =
      nlohmann::json::array();  // {"method", "server"}, {"store", "query"} or {"script"}
  // The last Nodes that ran, with shortened values. If a Turn failed, it failed at the last one.
  std::vector<TracedNode> nodes;
  std::string waits_at;  // the Node at which the Flow waits at the end; empty: it has ended
};

// Runs the event's Turn, and the Turns of the calls that it causes, without any effect: each call
// gets the next one of the answers, then a refusal. Stops at a sleep. Turns, outputs, lines of log
// and bytes are limited; the Turn that exceeds a limit ends the try and is left out. Thread-safe.
// Kept by: Trial.AnswersCallsInOrderThenRefusesThem, Trial.EndsAtALimitAndSaysWhich.
[[nodiscard]] Trial run_trial(const Stage& stage, model::Session session, model::Profile profile,
                              model::Event event, model::Timestamp now,
                              std::vector<model::CallResult> answers);

}  // namespace conversed::flows::tools
