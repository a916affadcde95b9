#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

struct LogNode final : Node {
  expression::Template text;

  Result<Step> run(Turn& turn) const override {
    turn.log(text.render(turn.scope()));
    return Continue{};
  }
};

constexpr NodeField log_fields[]{required<&LogNode::text>("text")};

}  // namespace

constinit const NodeType log_node{
    .name = "log", .shorthand = "text", .fields = log_fields, .create = create<LogNode>};

}  // namespace conversed::flows
