#pragma once

#include <string>

#include "flows/flow.h"

namespace conversed::flows::tools {

// A Flow as a picture. Each Node is a box with its type and its text. Each way is an arrow, which
// is dashed after Nodes that wait. Texts are cut to one line.

// For Mermaid (`flowchart TD`), which wikis and code hosts draw.
[[nodiscard]] std::string mermaid_of(const Flow& flow);
// For Graphviz's `dot`.
[[nodiscard]] std::string dot_of(const Flow& flow);

}  // namespace conversed::flows::tools
