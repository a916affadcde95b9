#include "flows/tools/graph.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "flows/expression/text.h"
#include "flows/node_types.h"

namespace conversed::flows::tools {
namespace {

constexpr std::size_t max_label_units = 48;

struct Edge {
  std::size_t from;
  NodeIndex to;
  std::string name;  // empty: the way to the Node that follows
  bool waits;
};

std::vector<Edge> arrows_of(const Flow& flow) {
  std::vector<Edge> arrows;
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
bool ends(const Flow& flow, const std::vector<Edge>& arrows) {
  return flow.start() == end_of_flow || std::ranges::count(arrows, end_of_flow, &Edge::to) > 0;
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

// The Node's id. Empty if it has none.
std::string_view id_of(const Flow::Slot& slot) {
  return slot.address.starts_with("nodes[") ? std::string_view() : slot.address;
}

}  // namespace

std::string box_of(NodeIndex index) {
  return index == end_of_flow ? "done" : "n" + std::to_string(static_cast<std::uint32_t>(index));
}

Graph graph_of(const Flow& flow, std::string_view locale) {
  Graph graph;
  graph.arrows.push_back({"start", box_of(flow.start()), "", false});
  for (std::size_t i = 0; i < flow.slots().size(); ++i) {
    const auto& slot = flow.slots()[i];
    graph.boxes.push_back({box_of(NodeIndex(i)), &slot, plain(slot.outline.label_in(locale), "")});
  }
  for (const auto& arrow : arrows_of(flow)) {
    graph.arrows.push_back(
        {box_of(NodeIndex(arrow.from)), box_of(arrow.to), plain(arrow.name, ""), arrow.waits});
  }
  return graph;
}

namespace {

// The text as one line. Characters that have a meaning in Mermaid become its entities.
std::string mermaid_text(std::string_view text) {
  constexpr std::string_view special = "\"<>{}[]()|#;`&";
  std::string escaped;
  for (const char c : plain(text, "")) {
    if (special.find(c) == std::string_view::npos) {
      escaped += c;
    } else if (c == '<' || c == '>') {
      escaped += c == '<' ? "#lt;" : "#gt;";
    } else {
      escaped += '#' + std::to_string(static_cast<int>(c)) + ';';
    }
  }
  return escaped;
}

}  // namespace

std::string mermaid_of(const Flow& flow, std::string_view locale) {
  const auto arrows = arrows_of(flow);
  std::string text = "flowchart TD\n  start([" + mermaid_text(flow.name()) + "])\n";
  for (std::size_t i = 0; i < flow.slots().size(); ++i) {
    const auto& slot = flow.slots()[i];
    std::string label(slot.type->name);
    if (const auto id = id_of(slot); !id.empty()) label.append(" id ").append(id);
    if (const auto& own = slot.outline.label_in(locale); !own.empty()) {
      label += "<br/>" + mermaid_text(own);
    }
    text += "  " + box_of(NodeIndex(i)) + "[\"" + label + "\"]\n";
  }
  if (ends(flow, arrows)) text += "  done([end])\n";
  text += "  start --> " + box_of(flow.start()) + "\n";
  for (const auto& arrow : arrows) {
    text += "  n" + std::to_string(arrow.from) + (arrow.waits ? " -.->" : " -->");
    if (!arrow.name.empty()) text += "|\"" + mermaid_text(arrow.name) + "\"|";
    text += " " + box_of(arrow.to) + "\n";
  }
  return text;
}

namespace {

constexpr std::string_view dot_special = "\"\\";
constexpr const char* dot_style =
    "  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n"
    "  edge [fontname=\"sans-serif\", fontsize=9];\n";

std::string color_of(bool is_taken, const char* taken) {
  return is_taken ? std::string(", color=\"#2e7d32\", ") + taken
                  : R"(, color="#c62828", fontcolor="#c62828")";
}

std::string dot_label(const Flow::Slot& slot, std::string_view locale) {
  std::string label(slot.type->name);
  if (const auto id = id_of(slot); !id.empty()) label.append(" #").append(id);
  const auto& own = slot.outline.label_in(locale);
  return own.empty() ? label : label + "\\n" + plain(own, dot_special);
}

// The boxes and arrows. Each box's name begins with `prefix`. Without `taken` there are no colors.
std::string dot_body(const Flow& flow, std::string_view locale, const std::string& prefix,
                     const Taken* taken) {
  const auto arrows = arrows_of(flow);
  std::string text =
      "  " + prefix + "start [shape=oval, label=\"" + plain(flow.name(), dot_special) + "\"];\n";
  for (std::size_t i = 0; i < flow.slots().size(); ++i) {
    const std::string box = box_of(NodeIndex(i));
    text.append("  ").append(prefix).append(box);
    text += " [label=\"" + dot_label(flow.slots()[i], locale) + '"';
    if (taken != nullptr) {
      text +=
          color_of(taken->boxes.contains(box), R"(style="rounded,filled", fillcolor="#d7f0dd")");
    }
    text += "];\n";
  }
  if (ends(flow, arrows)) text += "  " + prefix + "done [shape=oval, label=\"end\"];\n";
  text += "  " + prefix + "start -> " + prefix + box_of(flow.start()) + ";\n";
  for (const auto& arrow : arrows) {
    const std::string from = box_of(NodeIndex(arrow.from));
    const std::string to = box_of(arrow.to);
    text.append("  ").append(prefix).append(from);
    text.append(" -> ").append(prefix).append(to);
    text += " [label=\"" + plain(arrow.name, dot_special) + '"';
    if (arrow.waits) text += ", style=dashed";
    if (taken != nullptr) text += color_of(taken->arrows.contains({from, to}), "penwidth=2");
    text += "];\n";
  }
  return text;
}

}  // namespace

std::string dot_of(const Flow& flow, std::string_view locale) {
  return std::string("digraph flow {\n") + dot_style + dot_body(flow, locale, "", nullptr) + "}\n";
}

std::string dot_of(const std::vector<TakenFlow>& flows, std::string_view locale) {
  std::string text = std::string("digraph coverage {\n") + dot_style;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const std::string number = std::to_string(i);
    text += "  subgraph cluster_" + number + " {\n  fontname=\"sans-serif\"; label=\"" +
            plain(flows[i].title, dot_special) + "\";\n" +
            dot_body(flows[i].flow, locale, 'f' + number + '_', &flows[i].taken) + "  }\n";
  }
  return text + "}\n";
}

}  // namespace conversed::flows::tools
