#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

struct IfNode final : Node {
  expression::Expression condition;
  NodeIndex then = end_of_flow;
  NodeIndex otherwise = end_of_flow;

  void check(NodeConfig& config) const {
    const auto at = config.find("condition");
    if (!at || config.has("then") || config.has("else")) return;
    config.warn(*at, "has no `then` and no `else`, so it does nothing; write one beside `if`");
  }

  Result<Step> run(Turn& turn) const override {
    return Jump{condition.truthy(turn.scope()) ? then : otherwise};
  }
};

constexpr NodeField if_fields[]{required<&IfNode::condition>("condition"),
                                optional<&IfNode::then>("then").or_beside(),
                                optional<&IfNode::otherwise>("else").or_beside()};

}  // namespace

constinit const NodeType if_node{.name = "if",
                                 .shorthand = "condition",
                                 .continues = false,
                                 .fields = if_fields,
                                 .create = create<IfNode>};

}  // namespace conversed::flows
