// Writes values into the session's context.
#include "flows/nodes/assign_node.h"

namespace conversed::flows {
namespace {

std::unique_ptr<const Node> create_add_to_context(NodeConfig& config) {
  return std::make_unique<const AssignNode>(config.assignments("context"));
}

}  // namespace

constinit const NodeType add_to_context_node{
    .name = "addToContext",
    .summary =
        "Writes values into the context; a text that is one expression keeps its type. All "
        "values are made before the first is written.",
    .shorthand = "",
    .free_form = true,
    .fields = {},
    .example = "- addToContext: {count: \"{{(context.count || 0) + 1}}\", cart.total: 0}\n",
    .create = create_add_to_context};

}  // namespace conversed::flows
