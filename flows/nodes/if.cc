#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

struct IfNode final : Node {
  expression::Expression condition;
  NodeIndex then = end_of_flow;
  NodeIndex otherwise = end_of_flow;

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
