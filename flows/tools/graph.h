#pragma once

#include <string>

#include "flows/flow.h"

namespace conversed::flows::tools {

// A Flow as a picture: a box a Node, with its type and the text it says or asks, an arrow a way,
// dashed behind Nodes that wait. Texts are cut to one line.

// For Mermaid (`flowchart TD`), which wikis and code hosts draw.
[[nodiscard]] std::string mermaid_of(const Flow& flow);
// For Graphviz's `dot`.
[[nodiscard]] std::string dot_of(const Flow& flow);

}  // namespace conversed::flows::tools
