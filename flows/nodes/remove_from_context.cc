// Removes values from the session's context. What is not there is no error.
#include "flows/nodes/remove_node.h"

namespace conversed::flows {
namespace {

std::unique_ptr<const Node> create_remove_from_context(NodeConfig& config) {
  return std::make_unique<const RemoveNode>(config.places("context"));
}

}  // namespace

constinit const NodeType remove_from_context_node{
    .name = "removeFromContext",
    .summary = "Removes one value, or a list of values, from the context.",
    .shorthand = "",
    .free_form = true,
    .fields = {},
    .example = "- removeFromContext: [count, cart.total]\n",
    .create = create_remove_from_context};

}  // namespace conversed::flows
