#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// The session is busy while it sleeps. The daemon keeps only the timer's row in the store.
struct SleepNode final : Node {
  std::chrono::milliseconds duration{};

  Result<Step> run(Turn&) const override { return Sleep{duration}; }
  Result<Step> on_timer(Turn&) const override { return Continue{}; }
  Awaits awaits() const override { return Awaits::timer; }
};

constexpr NodeField sleep_fields[]{required<&SleepNode::duration>("for").within(
    std::chrono::milliseconds(1), std::chrono::hours(24 * 30))};

}  // namespace

constinit const NodeType sleep_node{
    .name = "sleep", .shorthand = "for", .fields = sleep_fields, .create = create<SleepNode>};

}  // namespace conversed::flows
