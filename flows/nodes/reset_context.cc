// Empties the session's context.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class ResetContextNode final : public Node {
 public:
  Result<Step> run(Turn& turn) const override {
    turn.reset_context();
    return Continue{};
  }
};

std::unique_ptr<const Node> create_reset_context(NodeConfig& config) {
  config.expect_true();
  return std::make_unique<const ResetContextNode>();
}

}  // namespace

constinit const NodeType reset_context_node{
    .name = "resetContext",
    .summary = "Empties the context; what `once` remembers stays.",
    .shorthand = "",
    .free_form = true,
    .fields = {},
    .example = "- resetContext: true\n",
    .create = create_reset_context};

}  // namespace conversed::flows
