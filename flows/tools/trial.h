#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "flows/turn/turn.h"

namespace conversed::flows::tools {

// The effects that an event would have.
struct Trial {
  std::vector<std::string> nodes;  // their addresses, in order
  std::vector<model::Output> outputs;
  nlohmann::json calls = nlohmann::json::array();  // {"method", "server"} or {"store", "query"}
  std::vector<std::string> log;
  std::string error;      // why a Turn failed, or why the try was ended; empty: neither happened
  std::string failed_at;  // the Node at which it failed
  std::string waits_at;   // the Node at which the Flow waits at the end; empty: it has ended
};

// Runs the event's Turn, and the Turns of the calls that it causes, without any effect: each call
// gets the next one of the answers, then a refusal. Stops at a sleep. Turns, outputs, lines of log
// and bytes are limited; the Turn that exceeds a limit ends the try and is left out. Thread-safe.
// Kept by: Trial.AnswersCallsInOrderThenRefusesThem, Trial.EndsAtALimitAndSaysWhich.
[[nodiscard]] Trial run_trial(TurnInput input, std::vector<model::CallResult> answers);

}  // namespace conversed::flows::tools
