#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

constinit const NodeType reset_state_node{.name = "resetState",
                                          .summary = "Sets `input.state` back to `default`.",
                                          .free_form = true,
                                          .example = "- resetState: true\n",
                                          .create = ChangeNode<&Turn::reset_state>::create};

}  // namespace conversed::flows
