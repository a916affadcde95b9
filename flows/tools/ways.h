#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "flows/flow.h"

namespace conversed::flows::tools {

// The Nodes that may run after a Node of its Flow, `end_of_flow` included.
[[nodiscard]] std::vector<NodeIndex> successors(const Flow::Slot& slot);

// Marks Nodes and all Nodes whose ways lead to them. One thread.
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

// The reach of each Node of one Flow.
struct Reach {
  std::vector<bool> reached;  // a way leads from the Flow's beginning to the Node
  std::vector<bool> ends;     // a way leads from the Node to a wait, a call or the Flow's end
};

// The reach in each Flow of a bundle, in their order. Their names are unique. Ways lead through
// `executeFlow` into other Flows, back at the end of these, and through `think` to the beginning of
// an Endpoint's Flow. `roots` are the names of the Flows that Endpoints run. If empty, each Flow
// may be one. Takes time linear in Nodes and ways for each root.
[[nodiscard]] std::vector<Reach> reach_of(const std::vector<const Flow*>& flows,
                                          const std::set<std::string, std::less<>>& roots);

}  // namespace conversed::flows::tools
