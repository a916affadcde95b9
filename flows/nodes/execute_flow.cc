#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// The stored state holds the entered Flows and where each stands, so that waits and calls inside of
// them work. A Flow may enter itself; the Turn bounds the depth.
NodePtr create_execute_flow(NodeConfig& config) {
  Enter step{.flow = config.flow_name("flow"), .comes_back = config.flag("return", true)};
  if (!step.comes_back) config.never_continues();
  return node_of([step = std::move(step)](Turn&) -> Step { return step; });
}

constexpr NodeField execute_flow_fields[]{
    {"flow", "name", "The Flow. Its newest version runs. Required."},
    {"return", "true or false",
     "Come back after the end of that Flow, and continue here. With false the conversation moves "
     "to "
     "that Flow for good, and leaves all Flows that were entered before. Default true."}};

}  // namespace

constinit const NodeType execute_flow_node{
    .name = "executeFlow",
    .summary =
        "Runs another Flow from its beginning, with the same input, context and profile. A `stop` "
        "in it ends the whole execution. Flows can enter each other 20 levels deep.",
    .shorthand = "flow",
    .fields = execute_flow_fields,
    .example = "- executeFlow: Orders\n",
    .create = create_execute_flow};

}  // namespace conversed::flows
