#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

constinit const NodeType reset_profile_node{
    .name = "resetProfile",
    .summary = "Empties the user's profile, for all sessions of the user.",
    .free_form = true,
    .example = "- resetProfile: true\n",
    .create = ChangeNode<&Turn::reset_profile>::create};

}  // namespace conversed::flows
