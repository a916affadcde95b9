#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class OnceNode final : public Node {
 public:
  OnceNode(NodeIndex first, NodeIndex afterwards) : first_(first), afterwards_(afterwards) {}

  Result<Step> run(Turn& turn) const override {
    auto memory = turn.memory();
    if (!memory) return model::fail(memory.error());
    const bool first = (*memory)->is_null();
    **memory = true;
    return Jump{first ? first_ : afterwards_};
  }

 private:
  const NodeIndex first_;
  const NodeIndex afterwards_;
};

NodePtr create_once(NodeConfig& config) {
  config.never_continues();
  (void)config.require("do");
  const NodeIndex first = config.branch("do");
  return std::make_unique<const OnceNode>(first, config.branch("else"));
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
