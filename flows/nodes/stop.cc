// Ends the execution; the next input starts the Flow at its beginning.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class StopNode final : public Node {
 public:
  Result<Step> run(Turn&) const override { return Stop{}; }
};

std::unique_ptr<const Node> create_stop(NodeConfig& config) {
  config.never_continues();
  config.expect_true();
  return std::make_unique<const StopNode>();
}

}  // namespace

constinit const NodeType stop_node{
    .name = "stop",
    .summary = "Ends the execution; the next input starts the Flow at its beginning.",
    .shorthand = "",
    .free_form = true,
    .fields = {},
    .example = "- stop: true\n",
    .create = create_stop};

}  // namespace conversed::flows
