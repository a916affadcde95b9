#pragma once

#include <vector>

#include "flows/flow.h"
#include "flows/node_types.h"

namespace conversed::flows::tools {

// Where a Node may lead, `end_of_flow` included.
[[nodiscard]] inline std::vector<NodeIndex> successors(const Flow::Slot& slot) {
  std::vector<NodeIndex> list;
  for (const auto& way : slot.outline.ways) list.push_back(way.to);
  if (slot.outline.continues) list.push_back(slot.next);
  return list;
}

struct Reach {
  std::vector<bool> reached;  // some way leads there from the Flow's beginning
  std::vector<bool> ends;     // from there some way ends the Turn: a wait, a call, the Flow's end
};

// Of each Node of the Flow. Takes time linear in Nodes and ways.
[[nodiscard]] inline Reach reach_of(const Flow& flow) {
  const auto& slots = flow.slots();
  Reach reach{std::vector<bool>(slots.size(), false), std::vector<bool>(slots.size(), false)};
  std::vector<std::vector<std::size_t>> backwards(slots.size());
  std::vector<std::size_t> ending;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto next = successors(slots[i]);
    bool ends = next.empty() || slots[i].node->awaits() != Node::Awaits::nothing;
    for (const NodeIndex to : next) {
      if (to == end_of_flow) {
        ends = true;
      } else {
        backwards[static_cast<std::size_t>(to)].push_back(i);
      }
    }
    if (ends) ending.push_back(i);
  }
  for (const auto i : ending) reach.ends[i] = true;
  while (!ending.empty()) {
    const auto at = ending.back();
    ending.pop_back();
    for (const auto from : backwards[at]) {
      if (reach.ends[from]) continue;
      reach.ends[from] = true;
      ending.push_back(from);
    }
  }
  std::vector<NodeIndex> open{flow.start()};
  while (!open.empty()) {
    const NodeIndex at = open.back();
    open.pop_back();
    if (at == end_of_flow || reach.reached[static_cast<std::size_t>(at)]) continue;
    reach.reached[static_cast<std::size_t>(at)] = true;
    for (const NodeIndex to : successors(flow.slot(at))) open.push_back(to);
  }
  return reach;
}

}  // namespace conversed::flows::tools
