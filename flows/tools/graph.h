#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flows/flow.h"

namespace conversed::flows::tools {

// A Flow as boxes and arrows. Beside the Nodes there are the boxes `start` and, if a way leads to
// the Flow's end, `done`.
struct Graph {
  struct Box {
    std::string name;  // within the graph
    const Flow::Slot* node = nullptr;
    std::string text;  // the Node's own, cut to one line
  };
  struct Arrow {
    std::string from;  // the boxes' names
    std::string to;
    std::string way;     // empty: the way to the Node that follows
    bool waits = false;  // the Node waits before it goes this way
  };
  std::vector<Box> boxes;  // of the Nodes
  std::vector<Arrow> arrows;
};

// Valid as long as the Flow.
// `locale`: texts by locale are shown in this one, such as the primary one of the project.
[[nodiscard]] Graph graph_of(const Flow& flow, std::string_view locale = {});
// The name of the Node's box.
[[nodiscard]] std::string box_of(NodeIndex index);

// The boxes that ran, and the arrows that were taken: from one box to another.
struct Taken {
  std::set<std::string> boxes;
  std::set<std::pair<std::string, std::string>> arrows;
};

// A Flow as a picture. Each Node is a box with its type and its text. Each way is an arrow, which
// is dashed after Nodes that wait. Texts are cut to one line.

// For Mermaid (`flowchart TD`), which wikis and code hosts draw.
[[nodiscard]] std::string mermaid_of(const Flow& flow, std::string_view locale = {});
// For Graphviz's `dot`.
[[nodiscard]] std::string dot_of(const Flow& flow, std::string_view locale = {});
// One picture of several Flows. Boxes and arrows that were taken are green and filled or thick, the
// others red.
struct TakenFlow {
  const Flow& flow;
  const Taken& taken;
  std::string title;
};
[[nodiscard]] std::string dot_of(const std::vector<TakenFlow>& flows, std::string_view locale = {});

}  // namespace conversed::flows::tools
