#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace conversed::flows::tools {

// One difference between two versions of a Flow.
struct FlowChange {
  enum class Kind : std::uint8_t { added, removed, changed, moved };

  // A value of a Node's config, or of the Flow itself. Null: absent.
  struct Field {
    std::string name;  // such as `text`, `data.count`; the type's name if the config is no mapping
    nlohmann::json before;
    nlohmann::json after;
  };

  Kind kind = Kind::changed;
  std::string path{};  // such as `nodes[3].then[0]`: its current place; a removed Node's old place
  std::string old_path{};       // its former place if it moved, otherwise empty
  std::string type{};           // the Node's; empty: the Flow itself
  std::string id{};             // the Node's; may be empty
  std::vector<Field> fields{};  // the changed ones
  nlohmann::json node{};        // the whole Node if it was added or removed
};

// The changes from one definition to another: added, removed, changed and moved Nodes in the order
// of the newer one, removed ones at their old place. Nodes are matched by their ids, then by their
// content, so inserting a Node does not change the Nodes after it. Branches are compared Node by
// Node, so a Node counts as changed only for its own fields. Values that are not definitions are
// compared as plain values. Pure. Thread-safe.
[[nodiscard]] std::vector<FlowChange> diff_flows(const nlohmann::json& before,
                                                 const nlohmann::json& after);

[[nodiscard]] std::string_view to_string(FlowChange::Kind kind);

}  // namespace conversed::flows::tools
