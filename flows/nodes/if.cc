#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class IfNode final : public Node {
 public:
  IfNode(expression::Expression condition, NodeIndex then, NodeIndex otherwise)
      : condition_(std::move(condition)), then_(then), else_(otherwise) {}

  Result<Step> run(Turn& turn) const override {
    return Jump{condition_.truthy(turn.scope()) ? then_ : else_};
  }

 private:
  const expression::Expression condition_;
  const NodeIndex then_;
  const NodeIndex else_;
};

NodePtr create_if(NodeConfig& config) {
  config.never_continues();
  auto condition = config.condition("condition");
  const NodeIndex then = config.branch("then");
  return std::make_unique<const IfNode>(std::move(condition), then, config.branch("else"));
}

constexpr NodeField if_fields[]{
    {"condition", "expression", "The condition. An error counts as false. Required."},
    {"then", "nodes", "Run if the condition is truthy.", NodeField::Where::beside},
    {"else", "nodes", "Run if not.", NodeField::Where::beside}};

}  // namespace

constinit const NodeType if_node{
    .name = "if",
    .summary = "Takes one of two branches, then continues behind both.",
    .shorthand = "condition",
    .fields = if_fields,
    .example =
        "- if: context.count > 3\n"
        "  then: [{say: Many.}]\n"
        "  else: [{say: Few.}]\n",
    .create = create_if};

}  // namespace conversed::flows
