// Goes on after a while. Until then the session is busy, and a row in the store is all there is.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::chrono::milliseconds longest_sleep = std::chrono::hours(24 * 30);

class SleepNode final : public Node {
 public:
  explicit SleepNode(std::chrono::milliseconds duration) : duration_(duration) {}

  Result<Step> run(Turn&) const override { return Sleep{duration_}; }
  Result<Step> on_timer(Turn&) const override { return Continue{}; }
  Awaits awaits() const override { return Awaits::timer; }

 private:
  const std::chrono::milliseconds duration_;
};

std::unique_ptr<const Node> create_sleep(NodeConfig& config) {
  return std::make_unique<const SleepNode>(
      config.duration("for", std::nullopt, std::chrono::milliseconds(1), longest_sleep));
}

constexpr NodeField sleep_fields[]{
    {"for", "duration", "How long, at most 30d; other events of the session wait. Required."}};

}  // namespace

constinit const NodeType sleep_node{
    .name = "sleep",
    .summary = "Goes on after a while; what has been said goes out before.",
    .shorthand = "for",
    .fields = sleep_fields,
    .example = "- sleep: 2s\n",
    .create = create_sleep};

}  // namespace conversed::flows
