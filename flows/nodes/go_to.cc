#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// The Turn's limits end endless loops.
struct GoToNode final : Node {
  std::string id;
  bool waits = false;

  Result<Step> run(Turn& turn) const override {
    if (waits) return Wait{};
    return target(turn);
  }
  Result<Step> on_input(Turn& turn) const override {
    turn.take_input();
    return target(turn);
  }
  Awaits awaits() const override { return waits ? Awaits::input : Awaits::nothing; }

 private:
  // The compiler has checked that the Node exists.
  Step target(Turn& turn) const { return Jump{turn.flow().find(id)}; }
};

constexpr NodeField go_to_fields[]{required<&GoToNode::id, &NodeConfig::node_id>("node"),
                                   optional<&GoToNode::waits>("wait").by_default(false)};

}  // namespace

constinit const NodeType go_to_node{.name = "goTo",
                                    .shorthand = "node",
                                    .continues = false,
                                    .fields = go_to_fields,
                                    .create = create<GoToNode>};

}  // namespace conversed::flows
