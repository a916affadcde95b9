#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

struct WaitNode final : Node {
  Result<Step> run(Turn&) const override { return Wait{}; }
  Result<Step> on_input(Turn& turn) const override {
    turn.take_input();
    return Continue{};
  }
  Awaits awaits() const override { return Awaits::input; }
};

}  // namespace

constinit const NodeType wait_node{.name = "wait", .create = create<WaitNode>};

}  // namespace conversed::flows
