#pragma once

#include <set>
#include <string>
#include <vector>

#include "flows/flow.h"

namespace conversed::flows::tools {

// Where a Node may lead within its Flow, `end_of_flow` included.
[[nodiscard]] std::vector<NodeIndex> successors(const Flow::Slot& slot);

// Of each Node of one Flow.
struct Reach {
  std::vector<bool> reached;  // some way leads there from the Flow's beginning
  std::vector<bool> ends;     // from there some way ends the Turn: a wait, a call, the Flow's end
};

// Of each of the Flows of one bundle, in their order; names are unique among them. Ways lead
// through `executeFlow` into other Flows and back, where those come to their end, and through
// `think` to the beginning of an Endpoint's Flow. `roots` are the names of the Flows that Endpoints
// run; without any, each may be one. Takes time linear in Nodes and ways for each root.
[[nodiscard]] std::vector<Reach> reach_of(const std::vector<const Flow*>& flows,
                                          const std::set<std::string, std::less<>>& roots);

}  // namespace conversed::flows::tools
