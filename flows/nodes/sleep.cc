#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::chrono::milliseconds longest_sleep = std::chrono::hours(24 * 30);

// The session is busy meanwhile. The daemon keeps nothing but the timer's row in the store.
class SleepNode final : public Node {
 public:
  explicit SleepNode(std::chrono::milliseconds duration) : duration_(duration) {}

  Result<Step> run(Turn&) const override { return Sleep{duration_}; }
  Result<Step> on_timer(Turn&) const override { return Continue{}; }
  Awaits awaits() const override { return Awaits::timer; }

 private:
  const std::chrono::milliseconds duration_;
};

constexpr NodeField sleep_fields[]{
    {"for", "duration",
     "How long, at most 30d. Other events of the session wait meanwhile. Required."}};

}  // namespace

constinit const NodeType sleep_node{
    .name = "sleep",
    .summary = "Continues after a while. Outputs that were said before go out at once.",
    .shorthand = "for",
    .fields = sleep_fields,
    .example = "- sleep: 2s\n",
    .create = [](NodeConfig& config) -> NodePtr {
      return std::make_unique<const SleepNode>(
          config.duration("for", std::nullopt, std::chrono::milliseconds(1), longest_sleep));
    }};

}  // namespace conversed::flows
