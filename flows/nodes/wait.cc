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

}  // namespace

constinit const NodeType wait_node{
    .name = "wait",
    .summary = "Waits for the next input of any kind, and continues with it.",
    .free_form = true,
    .example = "- wait: true\n",
    .create = [](NodeConfig& config) -> NodePtr {
      config.expect_true();
      return std::make_unique<const WaitNode>();
    }};

}  // namespace conversed::flows
