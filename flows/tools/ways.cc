#include "flows/tools/ways.h"

#include <map>
#include <optional>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows::tools {
namespace {

using Index = std::size_t;  // of a Node among those of all Flows

// The Flows of a bundle as one graph. One use.
class Graph {
 public:
  Graph(const std::vector<const Flow*>& flows, const std::set<std::string, std::less<>>& roots)
      : flows_(flows), first_(flows.size()), count_(lay_out()), returns_(count_), stops_(count_) {
    for (std::size_t f = 0; f < flows_.size(); ++f) by_name_.emplace(flows_[f]->name(), f);
    find_roots(roots);
    find_returns();
    find_stops();
  }

  [[nodiscard]] Reach reach(std::size_t f) const {
    const Flow& flow = *flows_[f];
    Reach reach{std::vector<bool>(flow.slots().size(), false), {}};
    for (std::size_t i = 0; i < flow.slots().size(); ++i) {
      const Index node = first_[f] + i;
      reach.ends.push_back(stops_.marked()[node] || returns_.marked()[node]);
    }
    std::vector<NodeIndex> open{flow.start()};
    while (!open.empty()) {
      const NodeIndex at = open.back();
      open.pop_back();
      if (at == end_of_flow || reach.reached[static_cast<std::size_t>(at)]) continue;
      reach.reached[static_cast<std::size_t>(at)] = true;
      const auto entered = entered_by(flow.slot(at));
      // If the entered Flow only goes in circles, the circles are reported, not the Nodes behind
      // it.
      if (entered && !returns(*entered) && stops(*entered)) continue;
      for (const NodeIndex to : successors(flow.slot(at))) open.push_back(to);
    }
    return reach;
  }

 private:
  // Gives each Flow its part of the Nodes' numbers; returns the number of Nodes.
  Index lay_out() {
    Index count = 0;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      first_[f] = count;
      count += flows_[f]->slots().size();
    }
    return count;
  }

  // The Flow that the Node enters.
  [[nodiscard]] std::optional<std::size_t> entered_by(const Flow::Slot& slot) const {
    for (const auto& use : slot.outline.uses) {
      if (use.kind != Flow::Use::Kind::flow) continue;
      const auto found = by_name_.find(use.name);
      if (found != by_name_.end()) return found->second;
    }
    return std::nullopt;
  }
  static bool starts_again(const Flow::Slot& slot) { return slot.type->name == "think"; }

  // Nothing for a Flow without Nodes, which ends at once.
  [[nodiscard]] std::optional<Index> start(std::size_t f) const {
    if (flows_[f]->start() == end_of_flow) return std::nullopt;
    return first_[f] + static_cast<Index>(flows_[f]->start());
  }
  // Whether it may come to its end; whether a Turn may end within it.
  [[nodiscard]] bool returns(std::size_t f) const {
    const auto at = start(f);
    return !at || returns_.marked()[*at];
  }
  [[nodiscard]] bool stops(std::size_t f) const {
    const auto at = start(f);
    return at && stops_.marked()[*at];
  }

  // Calls `each(f, node, slot)` for all Nodes.
  template <typename Each>
  void for_all(Each each) const {
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      for (std::size_t i = 0; i < flows_[f]->slots().size(); ++i) {
        each(f, first_[f] + i, flows_[f]->slots()[i]);
      }
    }
  }

  // For each Flow, the Flows of Endpoints that lead into it.
  void find_roots(const std::set<std::string, std::less<>>& names) {
    std::vector<std::set<std::size_t>> entered(flows_.size());
    for_all([&](std::size_t f, Index, const Flow::Slot& slot) {
      if (const auto to = entered_by(slot)) entered[f].insert(*to);
    });
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

  // Marks the Nodes from which some way leads to the end of their own Flow.
  void find_returns() {
    std::vector<std::vector<std::pair<std::size_t, Index>>> entering(flows_.size());
    const auto lead = [&](std::size_t f, Index node, NodeIndex to) {
      if (to == end_of_flow) {
        returns_.mark(node);
      } else {
        returns_.add_way(node, first_[f] + static_cast<Index>(to));
      }
    };
    for_all([&](std::size_t f, Index node, const Flow::Slot& slot) {
      const auto entered = entered_by(slot);
      if (entered) {
        if (slot.outline.continues) entering[*entered].emplace_back(f, node);
        return;
      }
      for (const NodeIndex to : successors(slot)) lead(f, node, to);
    });
    // An entered Flow leads back once it is known to end.
    std::vector<bool> known(flows_.size(), false);
    for (bool more = true; more;) {
      more = false;
      for (std::size_t f = 0; f < flows_.size(); ++f) {
        if (known[f] || !returns(f)) continue;
        known[f] = more = true;
        for (const auto& [caller, node] : entering[f]) {
          lead(caller, node, flows_[caller]->slots()[node - first_[caller]].next);
        }
      }
    }
  }

  // Marks the Nodes from which some way ends the Turn other than by the end of an entered Flow.
  void find_stops() {
    const auto begin = [&](Index node, std::size_t f) {
      if (const auto to = start(f)) stops_.add_way(node, *to);
    };
    for_all([&](std::size_t f, Index node, const Flow::Slot& slot) {
      const auto next = successors(slot);
      if (const auto entered = entered_by(slot)) {
        begin(node, *entered);
        if (!returns(*entered)) return;
        if (!slot.outline.continues) stops_.mark(node);  // its end is the execution's
      } else if (starts_again(slot)) {
        for (const std::size_t root : roots_[f]) {
          begin(node, root);
          if (returns(root)) stops_.mark(node);
        }
      } else if (next.empty() || slot.node->awaits() != Node::Awaits::nothing) {
        stops_.mark(node);
      }
      for (const NodeIndex to : next) {
        if (to != end_of_flow) stops_.add_way(node, first_[f] + static_cast<Index>(to));
      }
    });
  }

  const std::vector<const Flow*>& flows_;
  std::vector<Index> first_;  // Node of each Flow
  const Index count_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<std::set<std::size_t>> roots_;  // of each Flow
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
  const Graph graph(flows, roots);
  std::vector<Reach> list;
  for (std::size_t f = 0; f < flows.size(); ++f) list.push_back(graph.reach(f));
  return list;
}

}  // namespace conversed::flows::tools
