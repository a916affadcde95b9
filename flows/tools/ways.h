#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "flows/flow.h"

namespace conversed::flows::tools {

// Where a Node may lead within its Flow, `end_of_flow` included.
[[nodiscard]] std::vector<NodeIndex> successors(const Flow::Slot& slot);

// Marks Nodes, and for each of them the Nodes whose ways lead to it. One thread.
class Backwards {
 public:
  explicit Backwards(std::size_t count) : marked_(count, false), before_(count) {}

  void add_way(std::size_t from, std::size_t to);
  void mark(std::size_t node);
  [[nodiscard]] const std::vector<bool>& marked() const { return marked_; }

 private:
  std::vector<bool> marked_;
  std::vector<std::vector<std::size_t>> before_;
};

// For each Node of one Flow.
struct Reach {
  std::vector<bool> reached;  // some way leads there from the Flow's beginning
  std::vector<bool> ends;     // from there some way ends the Turn: a wait, a call, the Flow's end
};

// For each of the Flows of one bundle, in their order; their names are unique. Ways lead through
// `executeFlow` into other Flows and, at the end of those, back, and through `think` to the
// beginning of an Endpoint's Flow. `roots` are the names of the Flows that Endpoints run; if empty,
// each Flow may be one. Takes time linear in Nodes and ways for each root.
[[nodiscard]] std::vector<Reach> reach_of(const std::vector<const Flow*>& flows,
                                          const std::set<std::string, std::less<>>& roots);

}  // namespace conversed::flows::tools
