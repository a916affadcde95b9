#pragma once

#include <string>
#include <vector>

#include "flows/flow.h"

namespace conversed::flows::tools {

struct MissingAnswer {
  const Flow::Slot* question;
  std::string message;
};

// The questions of a Flow that may get no answer although another Node needs it. Without
// `onNoAnswer` the execution ends. An `onNoAnswer` that goes on may lead to a Node that says the
// missing answer. Takes a bounded time for each question.
[[nodiscard]] std::vector<MissingAnswer> missing_answers(const Flow& flow);

}  // namespace conversed::flows::tools
