#include "flows/tools/graph.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "flows/expression/text.h"
#include "flows/node_types.h"

namespace conversed::flows::tools {
namespace {

constexpr std::size_t max_label_units = 48;

struct Arrow {
  std::size_t from;
  NodeIndex to;
  std::string name;  // empty: the way to the Node that follows
  bool waits;
};

std::vector<Arrow> arrows_of(const Flow& flow) {
  std::vector<Arrow> arrows;
  for (std::size_t i = 0; i < flow.slots().size(); ++i) {
    const auto& slot = flow.slots()[i];
    const bool waits = slot.node->awaits() != Node::Awaits::nothing;
    for (const auto& way : slot.outline.ways) {
      // A branch that the Node lacks leads to the Node that follows.
      if (way.to == slot.next && slot.outline.continues) continue;
      arrows.push_back({i, way.to, slot.type->name == "goTo" ? "" : way.name, waits});
    }
    if (slot.outline.continues) arrows.push_back({i, slot.next, "", waits});
  }
  return arrows;
}

// Whether the picture needs a box for the end.
bool ends(const Flow& flow, const std::vector<Arrow>& arrows) {
  return flow.start() == end_of_flow || std::ranges::count(arrows, end_of_flow, &Arrow::to) > 0;
}

// The text as one line, without characters that have a meaning in the picture's language.
std::string plain(std::string_view text, std::string_view special) {
  std::string storage;
  const bool cut = expression::unit_length(text) > max_label_units;
  if (cut) text = expression::slice_units(text, 0, max_label_units, storage);
  std::string line;
  for (const char c : text) {
    const bool odd = special.find(c) != std::string_view::npos || (c >= 0 && c < ' ');
    line += odd ? ' ' : c;
  }
  return expression::scrub(line) + (cut ? "…" : "");
}

std::string label_of(const Flow::Slot& slot, std::string_view special, std::string_view line_end) {
  std::string label(slot.type->name);
  if (!slot.address.starts_with("nodes[")) label += " #" + slot.address;
  if (!slot.outline.label.empty()) {
    label += std::string(line_end) + plain(slot.outline.label, special);
  }
  return label;
}

std::string name_of(NodeIndex index) {
  return index == end_of_flow ? "done" : "n" + std::to_string(static_cast<std::uint32_t>(index));
}

}  // namespace

Graph graph_of(const Flow& flow) {
  Graph graph;
  graph.arrows.push_back({"start", name_of(flow.start()), "", false});
  for (std::size_t i = 0; i < flow.slots().size(); ++i) {
    const auto& slot = flow.slots()[i];
    graph.boxes.push_back({name_of(NodeIndex(i)), &slot, plain(slot.outline.label, "")});
  }
  for (const auto& arrow : arrows_of(flow)) {
    graph.arrows.push_back(
        {name_of(NodeIndex(arrow.from)), name_of(arrow.to), plain(arrow.name, ""), arrow.waits});
  }
  return graph;
}

std::string mermaid_of(const Flow& flow) {
  constexpr std::string_view special = "\"<>{}[]|#;`";
  const auto arrows = arrows_of(flow);
  std::string text = "flowchart TD\n  start([" + plain(flow.name(), "\"<>{}[]()|#;`") + "])\n";
  for (std::size_t i = 0; i < flow.slots().size(); ++i) {
    const auto& slot = flow.slots()[i];
    std::string label = label_of(slot, special, "<br/>");
    // Mermaid reads `#` as the beginning of an entity.
    for (auto at = label.find('#'); at != std::string::npos; at = label.find('#', at)) {
      label.replace(at, 1, "id ");
    }
    text += "  " + name_of(NodeIndex(i)) + "[\"" + label + "\"]\n";
  }
  if (ends(flow, arrows)) text += "  done([end])\n";
  text += "  start --> " + name_of(flow.start()) + "\n";
  for (const auto& arrow : arrows) {
    text += "  n" + std::to_string(arrow.from) + (arrow.waits ? " -.->" : " -->");
    if (!arrow.name.empty()) text += "|\"" + plain(arrow.name, special) + "\"|";
    text += " " + name_of(arrow.to) + "\n";
  }
  return text;
}

std::string dot_of(const Flow& flow) {
  constexpr std::string_view special = "\"\\";
  const auto arrows = arrows_of(flow);
  std::string text =
      "digraph flow {\n  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n"
      "  edge [fontname=\"sans-serif\", fontsize=9];\n  start [shape=oval, label=\"" +
      plain(flow.name(), special) + "\"];\n";
  for (std::size_t i = 0; i < flow.slots().size(); ++i) {
    text += "  " + name_of(NodeIndex(i)) + " [label=\"" +
            label_of(flow.slots()[i], special, "\\n") + "\"];\n";
  }
  if (ends(flow, arrows)) text += "  done [shape=oval, label=\"end\"];\n";
  text += "  start -> " + name_of(flow.start()) + ";\n";
  for (const auto& arrow : arrows) {
    text += "  n" + std::to_string(arrow.from) + " -> " + name_of(arrow.to) + " [label=\"" +
            plain(arrow.name, special) + "\"" + (arrow.waits ? ", style=dashed" : "") + "];\n";
  }
  return text + "}\n";
}

}  // namespace conversed::flows::tools
