#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class StopNode final : public Node {
 public:
  Result<Step> run(Turn&) const override { return Stop{}; }
};

}  // namespace

constinit const NodeType stop_node{
    .name = "stop",
    .summary = "Ends the execution. The next input starts the Flow at its beginning.",
    .free_form = true,
    .example = "- stop: true\n",
    .create = [](NodeConfig& config) -> NodePtr {
      config.never_continues();
      config.expect_true();
      return std::make_unique<const StopNode>();
    }};

}  // namespace conversed::flows
