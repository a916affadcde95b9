// The Nodes `setState` and `resetState`.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_bytes = 200;

struct SetStateNode final : Node {
  expression::Template state;

  Result<Step> run(Turn& turn) const override {
    auto name = state.render(turn.scope());
    if (name.size() > max_bytes) {
      return turn.failure(model::Errc::too_large, "the state has more than 200 bytes; shorten it");
    }
    turn.set_state(name == default_state ? "" : std::move(name));
    return Continue{};
  }
};

constexpr NodeField set_state_fields[]{required<&SetStateNode::state>("state")};

}  // namespace

constinit const NodeType set_state_node{.name = "setState",
                                        .shorthand = "state",
                                        .fields = set_state_fields,
                                        .create = create<SetStateNode>};

constinit const NodeType reset_state_node{.name = "resetState",
                                          .create = create<ChangeNode<&Turn::reset_state>>};

}  // namespace conversed::flows
