#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

struct OnceNode final : Node {
  NodeIndex first = end_of_flow;
  NodeIndex afterwards = end_of_flow;

  Result<Step> run(Turn& turn) const override {
    auto memory = turn.memory();
    if (!memory) return model::fail(memory.error());
    const bool is_first = (*memory)->is_null();
    **memory = true;
    return Jump{is_first ? first : afterwards};
  }
};

constexpr NodeField once_fields[]{required<&OnceNode::first>("do"),
                                  optional<&OnceNode::afterwards>("else").or_beside()};

}  // namespace

constinit const NodeType once_node{.name = "once",
                                   .shorthand = "do",
                                   .continues = false,
                                   .fields = once_fields,
                                   .create = create<OnceNode>};

}  // namespace conversed::flows
