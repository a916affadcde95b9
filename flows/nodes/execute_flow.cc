#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// The stored state contains the entered Flows with their places, so waits and calls inside of them
// work. A Flow may enter itself. The Turn bounds the depth.
struct ExecuteFlowNode final : Node {
  std::string flow;
  bool comes_back = false;

  void check(NodeConfig& config) const {
    if (!comes_back) config.never_continues();
  }

  Result<Step> run(Turn&) const override { return Enter{flow, comes_back}; }
};

constexpr NodeField execute_flow_fields[]{
    required<&ExecuteFlowNode::flow, &NodeConfig::flow_name>("flow"),
    optional<&ExecuteFlowNode::comes_back>("return").by_default(true)};

}  // namespace

constinit const NodeType execute_flow_node{.name = "executeFlow",
                                           .shorthand = "flow",
                                           .fields = execute_flow_fields,
                                           .create = create<ExecuteFlowNode>};

}  // namespace conversed::flows
