// Runs another Flow of the project. What waits or calls in it does so for the whole conversation:
// the Flows that were entered and where each stands are part of the stored state. A Flow may enter
// itself; the depth is limited.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class ExecuteFlowNode final : public Node {
 public:
  explicit ExecuteFlowNode(Enter step) : step_(std::move(step)) {}

  Result<Step> run(Turn&) const override { return step_; }

 private:
  const Enter step_;
};

std::unique_ptr<const Node> create_execute_flow(NodeConfig& config) {
  Enter step{.flow = config.flow_name("flow"), .comes_back = config.flag("return", true)};
  if (!step.comes_back) config.never_continues();
  return std::make_unique<const ExecuteFlowNode>(std::move(step));
}

constexpr NodeField execute_flow_fields[]{
    {"flow", "name", "The Flow, by its name; its newest version runs. Required."},
    {"return", "true or false",
     "Come back after that Flow's end and go on here; default true. With false the conversation "
     "has moved there: nothing that was entered before comes back either."}};

}  // namespace

constinit const NodeType execute_flow_node{
    .name = "executeFlow",
    .summary =
        "Runs another Flow from its beginning, with the same input, context and profile. Its "
        "`stop` ends the whole execution. At most 20 Flows are entered one inside the other.",
    .shorthand = "flow",
    .fields = execute_flow_fields,
    .example = "- executeFlow: Orders\n",
    .create = create_execute_flow};

}  // namespace conversed::flows
