#include "flows/tools/coverage.h"

#include <algorithm>
#include <map>
#include <utility>

#include "flows/node_types.h"

namespace conversed::flows::tools {
namespace {

using Arrow = Graph::Arrow;

// The arrows of each box that has several, without repeated ends.
std::map<std::string, std::vector<Arrow>> branches_of(const Graph& graph) {
  std::map<std::string, std::vector<Arrow>> branches;
  for (const auto& arrow : graph.arrows) {
    auto& of_box = branches[arrow.from];
    if (std::ranges::find(of_box, arrow.to, &Arrow::to) == of_box.end()) of_box.push_back(arrow);
  }
  std::erase_if(branches, [](const auto& each) { return each.second.size() < 2; });
  return branches;
}

Coverage::OfFlow report_on(const Flow& flow, const Taken& taken, std::string_view locale) {
  const auto graph = graph_of(flow, locale);
  const auto branches = branches_of(graph);
  Coverage::OfFlow found{.flow = flow.name(), .nodes = graph.boxes.size()};
  for (const auto& box : graph.boxes) {
    const std::string name = box.node->address + ' ' + std::string(box.node->type->name);
    const bool ran = taken.boxes.contains(box.name);
    if (ran) {
      ++found.nodes_run;
    } else {
      found.missed.push_back(name + (box.text.empty() ? "" : ": " + box.text) + " never runs");
    }
    const auto of_box = branches.find(box.name);
    if (of_box == branches.end()) continue;
    for (const auto& arrow : of_box->second) {
      ++found.branches;
      if (taken.arrows.contains({arrow.from, arrow.to})) {
        ++found.branches_taken;
      } else if (ran) {
        found.missed.push_back(name + ": " + (arrow.way.empty() ? "the way on" : arrow.way) +
                               " is never taken");
      }
    }
  }
  return found;
}

}  // namespace

Coverage::Coverage(std::vector<std::shared_ptr<const Flow>> flows, std::string locale)
    : locale_(std::move(locale)) {
  for (auto& flow : flows) parts_.push_back({std::move(flow)});
}

Coverage::Part* Coverage::part_of(const Flow& flow) {
  const auto found =
      std::ranges::find_if(parts_, [&](const Part& part) { return part.flow.get() == &flow; });
  return found == parts_.end() ? nullptr : &*found;
}

void Coverage::runs(const Flow& flow, const Flow::Slot& node) {
  if (Part* part = part_of(flow)) part->taken.boxes.insert(box_of(flow.find(node.address)));
}

void Coverage::leads(const Flow& flow, const Flow::Slot& node, NodeIndex to) {
  if (Part* part = part_of(flow)) {
    part->taken.arrows.emplace(box_of(flow.find(node.address)), box_of(to));
  }
}

void Coverage::add(const Coverage& other) {
  for (std::size_t i = 0; i < std::min(parts_.size(), other.parts_.size()); ++i) {
    parts_[i].taken.boxes.merge(Taken(other.parts_[i].taken).boxes);
    parts_[i].taken.arrows.merge(Taken(other.parts_[i].taken).arrows);
  }
}

std::vector<Coverage::OfFlow> Coverage::report() const {
  std::vector<OfFlow> all;
  for (const auto& part : parts_) all.push_back(report_on(*part.flow, part.taken, locale_));
  return all;
}

std::string Coverage::dot() const {
  std::vector<TakenFlow> flows;
  for (const auto& part : parts_) {
    flows.push_back(
        {*part.flow, part.taken, to_string(report_on(*part.flow, part.taken, locale_))});
  }
  return dot_of(flows, locale_);
}

std::string to_string(const Coverage::OfFlow& counts) {
  const auto of = [](std::size_t some, std::size_t all, const char* what) {
    return std::to_string(some) + " of " + std::to_string(all) + what;
  };
  return counts.flow + ": " + of(counts.nodes_run, counts.nodes, " Nodes, ") +
         of(counts.branches_taken, counts.branches, " branches");
}

}  // namespace conversed::flows::tools
