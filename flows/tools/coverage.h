#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "flows/flow.h"
#include "flows/tools/graph.h"

namespace conversed::flows::tools {

// The Nodes of a bundle's Flows that have run, and the branches that were taken. A branch is one of
// the ways of a Node that has several; ways that lead to the same Node count as one. One thread.
class Coverage {
 public:
  // `locale`: texts by locale are shown in this one.
  explicit Coverage(std::vector<std::shared_ptr<const Flow>> flows, std::string locale = {});

  // Other Flows are ignored.
  void runs(const Flow& flow, const Flow::Slot& node);
  void leads(const Flow& flow, const Flow::Slot& node, NodeIndex to);
  // Adds those of the same Flows.
  void add(const Coverage& other);

  struct OfFlow {
    std::string flow;  // its name
    std::size_t nodes_run = 0;
    std::size_t nodes = 0;
    std::size_t branches_taken = 0;
    std::size_t branches = 0;
    // Nodes that never ran, and branches that were never taken although their Node ran:
    // `nodes[2] question: onNoAnswer is never taken`.
    std::vector<std::string> missed{};
  };
  [[nodiscard]] std::vector<OfFlow> report() const;
  // A picture of the Flows for Graphviz.
  [[nodiscard]] std::string dot() const;

 private:
  struct Part {
    std::shared_ptr<const Flow> flow;
    Taken taken{};
  };
  [[nodiscard]] Part* part_of(const Flow& flow);

  std::string locale_;
  std::vector<Part> parts_;
};

// `Orders: 7 of 9 Nodes, 3 of 5 branches`
[[nodiscard]] std::string to_string(const Coverage::OfFlow& counts);

}  // namespace conversed::flows::tools
