#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

struct ReturnNode final : Node {
  std::optional<expression::JsonTemplate> value;

  static void check(NodeConfig& config) { config.ends_flow(); }

  Result<Step> run(Turn& turn) const override {
    return Return{value ? value->value(turn.scope()) : nlohmann::json()};
  }
};

constexpr NodeField return_fields[]{optional<&ReturnNode::value>("value")};

}  // namespace

constinit const NodeType return_node{.name = "return",
                                     .shorthand = "value",
                                     .continues = false,
                                     .fields = return_fields,
                                     .create = create<ReturnNode>};

}  // namespace conversed::flows
