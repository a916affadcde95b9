#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

NodePtr create_once(NodeConfig& config) {
  config.never_continues();
  (void)config.require("do");
  const NodeIndex first = config.branch("do");
  const NodeIndex afterwards = config.branch("else");
  return node_of([first, afterwards](Turn& turn) -> Result<Step> {
    auto memory = turn.memory();
    if (!memory) return model::fail(memory.error());
    const bool is_first = (*memory)->is_null();
    **memory = true;
    return Jump{is_first ? first : afterwards};
  });
}

constexpr NodeField once_fields[]{
    {"do", "nodes", "Run at the first pass in the session. Required."},
    {"else", "nodes", "Run at every later pass.", NodeField::Where::beside}};

}  // namespace

constinit const NodeType once_node{
    .name = "once",
    .summary = "Runs some Nodes at the first pass in a session, others afterwards.",
    .shorthand = "do",
    .fields = once_fields,
    .example =
        "- once: [{say: Welcome!}]\n"
        "  else: [{say: Welcome back.}]\n",
    .create = create_once};

}  // namespace conversed::flows
