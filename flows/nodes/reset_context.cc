#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

constinit const NodeType reset_context_node{
    .name = "resetContext",
    .summary = "Empties the context. The counts of `once`, `interval` and the like stay.",
    .free_form = true,
    .example = "- resetContext: true\n",
    .create = ChangeNode<&Turn::reset_context>::create};

}  // namespace conversed::flows
