// Waits for the next input, whatever it is, and goes on with it.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class WaitNode final : public Node {
 public:
  Result<Step> run(Turn&) const override { return Wait{}; }
  Result<Step> on_input(Turn&) const override { return Continue{}; }
  Awaits awaits() const override { return Awaits::input; }
};

std::unique_ptr<const Node> create_wait(NodeConfig& config) {
  config.expect_true();
  return std::make_unique<const WaitNode>();
}

}  // namespace

constinit const NodeType wait_node{
    .name = "wait",
    .summary = "Waits for the next input, whatever it is, and goes on with it.",
    .shorthand = "",
    .free_form = true,
    .fields = {},
    .example = "- wait: true\n",
    .create = create_wait};

}  // namespace conversed::flows
