#pragma once

#include <string>
#include <vector>

#include "flows/flow.h"

namespace conversed::flows::tools {

struct MissingAnswer {
  const Flow::Slot* question;
  std::string message;
};

// The questions of a Flow whose answer another Node needs, but which may get none: without
// `onNoAnswer` the execution ends, and an `onNoAnswer` that goes on may lead to a Node that says
// the missing answer. Takes a bounded time for each question.
[[nodiscard]] std::vector<MissingAnswer> missing_answers(const Flow& flow);

}  // namespace conversed::flows::tools
