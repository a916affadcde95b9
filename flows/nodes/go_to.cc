// Goes on at another Node of the same Flow, at once or with the next input. Loops end at the Turn's
// limits.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class GoToNode final : public Node {
 public:
  GoToNode(std::string id, bool waits) : id_(std::move(id)), waits_(waits) {}

  // The compiler has seen to it that the Node is there.
  Result<Step> run(Turn& turn) const override {
    if (waits_) return Wait{};
    return Jump{turn.flow().find(id_)};
  }
  Result<Step> on_input(Turn& turn) const override { return Jump{turn.flow().find(id_)}; }
  Awaits awaits() const override { return waits_ ? Awaits::input : Awaits::nothing; }

 private:
  const std::string id_;
  const bool waits_;
};

std::unique_ptr<const Node> create_go_to(NodeConfig& config) {
  config.never_continues();
  auto id = config.node_id("node");
  return std::make_unique<const GoToNode>(std::move(id), config.flag("wait", false));
}

constexpr NodeField go_to_fields[]{
    {"node", "id", "The id of a Node of this Flow; required."},
    {"wait", "true or false", "Wait for the next input first, and go on there with it."}};

}  // namespace

constinit const NodeType go_to_node{
    .name = "goTo",
    .summary = "Goes on at another Node of the same Flow, at once or with the next input.",
    .shorthand = "node",
    .fields = go_to_fields,
    .example = "- goTo: {node: ask, wait: true}\n",
    .create = create_go_to};

}  // namespace conversed::flows
