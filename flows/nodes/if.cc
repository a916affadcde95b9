#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

NodePtr create_if(NodeConfig& config) {
  config.never_continues();
  auto condition = config.condition("condition");
  const NodeIndex then = config.branch("then");
  const NodeIndex otherwise = config.branch("else");
  return node_of([condition = std::move(condition), then, otherwise](Turn& turn) -> Step {
    return Jump{condition.truthy(turn.scope()) ? then : otherwise};
  });
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
