// Empties the user's profile.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class ResetProfileNode final : public Node {
 public:
  Result<Step> run(Turn& turn) const override {
    turn.reset_profile();
    return Continue{};
  }
};

std::unique_ptr<const Node> create_reset_profile(NodeConfig& config) {
  config.expect_true();
  return std::make_unique<const ResetProfileNode>();
}

}  // namespace

constinit const NodeType reset_profile_node{
    .name = "resetProfile",
    .summary = "Empties the user's profile: what all of the user's sessions share is forgotten.",
    .shorthand = "",
    .free_form = true,
    .fields = {},
    .example = "- resetProfile: true\n",
    .create = create_reset_profile};

}  // namespace conversed::flows
