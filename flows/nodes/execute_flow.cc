#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// The stored state contains the entered Flows with their places and arguments, so waits and calls
// inside of them work. A Flow may enter itself. The Turn bounds the depth.
struct ExecuteFlowNode final : Node {
  std::string flow;
  std::optional<expression::JsonTemplate> arguments;
  std::optional<expression::Path> store_in;
  bool comes_back = false;

  static void read_arguments(NodeConfig& config, const View& at,
                             std::optional<expression::JsonTemplate>& into) {
    if (!at.expect_mapping()) return;
    into = config.json_template_at(at);
    for (const auto& member : at.value().members()) config.note_argument(member.name);
  }

  void check(NodeConfig& config) const {
    if (comes_back) return;
    config.never_continues();
    if (store_in) config.problem("storeIn", "nothing comes back with `return: false`; remove one");
  }

  Result<Step> run(Turn& turn) const override {
    Enter step{.flow = flow, .comes_back = comes_back};
    if (arguments) step.arguments = arguments->value(turn.scope());
    return step;
  }

  Result<void> on_return(Turn& turn, nlohmann::json value) const override {
    return store_in ? turn.assign(*store_in, std::move(value)) : Result<void>();
  }
};

constexpr NodeField execute_flow_fields[]{
    required<&ExecuteFlowNode::flow, &NodeConfig::flow_name>("flow"),
    optional<&ExecuteFlowNode::arguments, &ExecuteFlowNode::read_arguments>("with").as(
        Form::any_mapping),
    optional<&ExecuteFlowNode::store_in>("storeIn"),
    optional<&ExecuteFlowNode::comes_back>("return").by_default(true)};

}  // namespace

constinit const NodeType execute_flow_node{.name = "executeFlow",
                                           .shorthand = "flow",
                                           .fields = execute_flow_fields,
                                           .create = create<ExecuteFlowNode>};

}  // namespace conversed::flows
