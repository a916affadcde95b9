#include "flows/nodes/assign_node.h"

namespace conversed::flows {

constinit const NodeType add_to_context_node{
    .name = "addToContext",
    .summary =
        "Writes values into the context. A text that is one expression keeps its type. All values "
        "are made before the first is written.",
    .free_form = true,
    .example = "- addToContext: {count: \"{{(context.count || 0) + 1}}\", cart.total: 0}\n",
    .create = [](NodeConfig& config) -> NodePtr {
      return std::make_unique<const AssignNode>(config.assignments("context"));
    }};

}  // namespace conversed::flows
