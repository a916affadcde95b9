#include "flows/tools/ways.h"

#include <map>
#include <optional>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows::tools {
namespace {

// The Flows of a bundle as one graph. All Nodes are in one list. One use.
class BundleGraph {
 public:
  BundleGraph(const std::vector<const Flow*>& flows,
              const std::set<std::string, std::less<>>& roots)
      : flows_(flows), nodes_(nodes_of(flows)), returns_(nodes_.size()), stops_(nodes_.size()) {
    find_roots(roots);
    find_returns();
    find_stops();
  }

  [[nodiscard]] Reach reach(std::size_t f) const {
    const Flow& flow = *flows_[f];
    Reach reach{std::vector<bool>(flow.slots().size(), false), {}};
    for (std::size_t i = 0; i < flow.slots().size(); ++i) {
      const std::size_t node = place_of(f, NodeIndex(i));
      reach.ends.push_back(stops_.marked()[node] || returns_.marked()[node]);
    }
    std::vector<NodeIndex> open{flow.start()};
    while (!open.empty()) {
      const NodeIndex at = open.back();
      open.pop_back();
      if (at == end_of_flow || reach.reached[static_cast<std::size_t>(at)]) continue;
      reach.reached[static_cast<std::size_t>(at)] = true;
      const auto entered = nodes_[place_of(f, at)].entered;
      // If the entered Flow only runs in circles, only the circles are reported.
      if (entered && !returns(*entered) && stops(*entered)) continue;
      for (const NodeIndex to : successors(flow.slot(at))) open.push_back(to);
    }
    return reach;
  }

 private:
  struct PlacedNode {
    std::size_t flow;
    const Flow::Slot* slot;
    std::optional<std::size_t> entered;  // the Flow that the Node enters
  };

  std::vector<PlacedNode> nodes_of(const std::vector<const Flow*>& flows) {
    std::map<std::string, std::size_t, std::less<>> by_name;
    for (std::size_t f = 0; f < flows.size(); ++f) by_name.emplace(flows[f]->name(), f);
    std::vector<PlacedNode> nodes;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      first_.push_back(nodes.size());
      for (const auto& slot : flows[f]->slots()) {
        auto& node = nodes.emplace_back(PlacedNode{f, &slot, std::nullopt});
        for (const auto& use : slot.outline.uses) {
          const auto found = by_name.find(use.name);
          const bool enters = use.kind == Flow::Use::Kind::flow && found != by_name.end();
          if (enters && !node.entered) node.entered = found->second;
        }
      }
    }
    return nodes;
  }

  [[nodiscard]] std::size_t place_of(std::size_t f, NodeIndex index) const {
    return first_[f] + static_cast<std::size_t>(index);
  }
  // Nothing for a Flow without Nodes, which ends at once.
  [[nodiscard]] std::optional<std::size_t> start(std::size_t f) const {
    if (flows_[f]->start() == end_of_flow) return std::nullopt;
    return place_of(f, flows_[f]->start());
  }
  // Whether it may reach its end; whether a Turn may end within it.
  [[nodiscard]] bool returns(std::size_t f) const {
    const auto at = start(f);
    return !at || returns_.marked()[*at];
  }
  [[nodiscard]] bool stops(std::size_t f) const {
    const auto at = start(f);
    return at && stops_.marked()[*at];
  }

  // For each Flow, the Endpoints' Flows that lead into it.
  void find_roots(const std::set<std::string, std::less<>>& names) {
    std::vector<std::set<std::size_t>> entered(flows_.size());
    for (const auto& node : nodes_) {
      if (node.entered) entered[node.flow].insert(*node.entered);
    }
    roots_.resize(flows_.size());
    for (std::size_t root = 0; root < flows_.size(); ++root) {
      if (!names.empty() && !names.contains(flows_[root]->name())) continue;
      std::vector<std::size_t> open{root};
      while (!open.empty()) {
        const std::size_t f = open.back();
        open.pop_back();
        if (!roots_[f].insert(root).second) continue;
        open.insert(open.end(), entered[f].begin(), entered[f].end());
      }
    }
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      if (roots_[f].empty()) roots_[f].insert(f);
    }
  }

  // Marks the Nodes from which a way leads to the end of their own Flow.
  void find_returns() {
    std::vector<std::vector<std::size_t>> entering(flows_.size());
    const auto lead = [&](std::size_t node, NodeIndex to) {
      if (to == end_of_flow) {
        returns_.mark(node);
      } else {
        returns_.add_way(node, place_of(nodes_[node].flow, to));
      }
    };
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const auto& [f, slot, entered] = nodes_[node];
      if (!entered) {
        for (const NodeIndex to : successors(*slot)) lead(node, to);
      } else if (slot->outline.continues) {
        entering[*entered].push_back(node);
      }
    }
    // A Flow that may end leads back to the Nodes that enter it.
    std::vector<bool> known(flows_.size(), false);
    for (bool more = true; more;) {
      more = false;
      for (std::size_t f = 0; f < flows_.size(); ++f) {
        if (known[f] || !returns(f)) continue;
        known[f] = more = true;
        for (const std::size_t node : entering[f]) lead(node, nodes_[node].slot->next);
      }
    }
  }

  // Marks the Nodes from which a way ends the Turn, except by the end of an entered Flow.
  void find_stops() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const auto& [f, slot, entered] = nodes_[node];
      const auto next = successors(*slot);
      if (entered) {
        if (const auto to = start(*entered)) stops_.add_way(node, *to);
        if (!returns(*entered)) continue;
        if (!slot->outline.continues) stops_.mark(node);  // its end is the execution's end
      } else if (slot->type->name == "think") {
        find_stops_of_restart(node, roots_[f]);
      } else if (next.empty() || slot->node->awaits() != Node::Awaits::nothing) {
        stops_.mark(node);
      }
      for (const NodeIndex to : next) {
        if (to != end_of_flow) stops_.add_way(node, place_of(f, to));
      }
    }
  }

  // The Node restarts the Flow of its Endpoint, which is one of `roots`.
  void find_stops_of_restart(std::size_t node, const std::set<std::size_t>& roots) {
    for (const std::size_t root : roots) {
      if (const auto to = start(root)) stops_.add_way(node, *to);
      if (returns(root)) stops_.mark(node);
    }
  }

  const std::vector<const Flow*>& flows_;
  std::vector<std::size_t> first_;  // first Node of each Flow
  const std::vector<PlacedNode> nodes_;
  std::vector<std::set<std::size_t>> roots_;  // for each Flow
  Backwards returns_;
  Backwards stops_;
};

}  // namespace

void Backwards::add_way(std::size_t from, std::size_t to) {
  if (marked_[to]) {
    mark(from);
  } else {
    before_[to].push_back(from);
  }
}

void Backwards::mark(std::size_t node) {
  std::vector<std::size_t> open{node};
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    if (marked_[at]) continue;
    marked_[at] = true;
    open.insert(open.end(), before_[at].begin(), before_[at].end());
  }
}

std::vector<NodeIndex> successors(const Flow::Slot& slot) {
  std::vector<NodeIndex> list;
  for (const auto& way : slot.outline.ways) list.push_back(way.to);
  if (slot.outline.continues) list.push_back(slot.next);
  return list;
}

std::vector<Reach> reach_of(const std::vector<const Flow*>& flows,
                            const std::set<std::string, std::less<>>& roots) {
  const BundleGraph graph(flows, roots);
  std::vector<Reach> list;
  for (std::size_t f = 0; f < flows.size(); ++f) list.push_back(graph.reach(f));
  return list;
}

}  // namespace conversed::flows::tools
