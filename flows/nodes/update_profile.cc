// Writes values into the user's profile, which all sessions of the user share.
#include "flows/nodes/assign_node.h"

namespace conversed::flows {
namespace {

std::unique_ptr<const Node> create_update_profile(NodeConfig& config) {
  return std::make_unique<const AssignNode>(config.assignments("profile"));
}

}  // namespace

constinit const NodeType update_profile_node{
    .name = "updateProfile",
    .summary = "Writes values into the user's profile, which all sessions of the user share.",
    .shorthand = "",
    .free_form = true,
    .fields = {},
    .example = "- updateProfile: {name: \"{{input.text}}\"}\n",
    .create = create_update_profile};

}  // namespace conversed::flows
