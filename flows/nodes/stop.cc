#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

struct StopNode final : Node {
  Result<Step> run(Turn&) const override { return Stop{}; }
};

}  // namespace

constinit const NodeType stop_node{.name = "stop", .continues = false, .create = create<StopNode>};

}  // namespace conversed::flows
