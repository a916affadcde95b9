// Sets the state of the conversation back to what it was at first.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class ResetStateNode final : public Node {
 public:
  Result<Step> run(Turn& turn) const override {
    turn.set_state("");
    return Continue{};
  }
};

std::unique_ptr<const Node> create_reset_state(NodeConfig& config) {
  config.expect_true();
  return std::make_unique<const ResetStateNode>();
}

}  // namespace

constinit const NodeType reset_state_node{.name = "resetState",
                                          .summary = "Sets `input.state` back to `default`.",
                                          .shorthand = "",
                                          .free_form = true,
                                          .fields = {},
                                          .example = "- resetState: true\n",
                                          .create = create_reset_state};

}  // namespace conversed::flows
