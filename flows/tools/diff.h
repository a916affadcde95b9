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

  // A value of a Node's config, or of the Flow itself. Null: it is not there.
  struct Field {
    std::string name;  // such as `text`, `data.count`; the type's name if the config is no mapping
    nlohmann::json before;
    nlohmann::json after;
  };

  Kind kind = Kind::changed;
  std::string path{};      // as `nodes[3].then[0]`: its place now; of a removed Node its old place
  std::string old_path{};  // where it was, if that is another place; else empty
  std::string type{};      // of the Node; empty: the Flow's own
  std::string id{};        // the Node's; may be empty
  std::vector<Field> fields{};  // the changed ones
  nlohmann::json node{};        // an added or removed Node, whole
};

// The changes from one definition to another: added, removed, changed and moved Nodes in the order
// of the newer one, removed ones at their old place. Nodes are found again by their ids, then by
// their content, so that inserting a Node does not change the Nodes behind it. Branches are
// compared Node by Node, so that a Node counts as changed only for its own fields. Other values
// than definitions are compared as plain values. Pure; thread-safe.
[[nodiscard]] std::vector<FlowChange> diff_flows(const nlohmann::json& before,
                                                 const nlohmann::json& after);

[[nodiscard]] std::string_view to_string(FlowChange::Kind kind);

}  // namespace conversed::flows::tools
