// Removes values from the user's profile. What is not there is no error.
#include "flows/nodes/remove_node.h"

namespace conversed::flows {
namespace {

std::unique_ptr<const Node> create_remove_from_profile(NodeConfig& config) {
  return std::make_unique<const RemoveNode>(config.places("profile"));
}

}  // namespace

constinit const NodeType remove_from_profile_node{
    .name = "removeFromProfile",
    .summary = "Removes one value, or a list of values, from the user's profile.",
    .shorthand = "",
    .free_form = true,
    .fields = {},
    .example = "- removeFromProfile: [name, address.street]\n",
    .create = create_remove_from_profile};

}  // namespace conversed::flows
