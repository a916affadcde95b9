#include "flows/nodes/assign_node.h"

namespace conversed::flows {

constinit const NodeType update_profile_node{
    .name = "updateProfile",
    .summary = "Writes values into the user's profile, which all sessions of the user share.",
    .free_form = true,
    .example = "- updateProfile: {name: \"{{input.text}}\"}\n",
    .create = [](NodeConfig& config) -> NodePtr {
      return std::make_unique<const AssignNode>(config.assignments("profile"));
    }};

}  // namespace conversed::flows
