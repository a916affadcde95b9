#include "flows/nodes/assign_node.h"

namespace conversed::flows {

constinit const NodeType remove_from_profile_node{
    .name = "removeFromProfile",
    .summary = "Removes one value, or a list of values, from the user's profile.",
    .free_form = true,
    .example = "- removeFromProfile: [name, address.street]\n",
    .create = [](NodeConfig& config) -> NodePtr {
      return std::make_unique<const RemoveNode>(config.places("profile"));
    }};

}  // namespace conversed::flows
