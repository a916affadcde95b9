// Lets the user be: what waits to follow him up is cancelled with this Turn.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class CancelFollowUpNode final : public Node {
 public:
  Result<Step> run(Turn& turn) const override {
    turn.cancel_follow_ups();
    return Continue{};
  }
};

std::unique_ptr<const Node> create_cancel_follow_up(NodeConfig& config) {
  config.expect_true();
  return std::make_unique<const CancelFollowUpNode>();
}

}  // namespace

constinit const NodeType cancel_follow_up_node{
    .name = "cancelFollowUp",
    .summary = "Cancels all follow-ups that wait; no silence is waited for until the next message.",
    .shorthand = "",
    .free_form = true,
    .fields = {},
    .example = "- cancelFollowUp: true\n",
    .create = create_cancel_follow_up};

}  // namespace conversed::flows
