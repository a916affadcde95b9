#include "flows/nodes/assign_node.h"

namespace conversed::flows {

constinit const NodeType remove_from_context_node{
    .name = "removeFromContext",
    .summary = "Removes one value, or a list of values, from the context.",
    .free_form = true,
    .example = "- removeFromContext: [count, cart.total]\n",
    .create = [](NodeConfig& config) -> NodePtr {
      return std::make_unique<const RemoveNode>(config.places("context"));
    }};

}  // namespace conversed::flows
