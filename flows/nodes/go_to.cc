#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// Loops end at the Turn's limits.
class GoToNode final : public Node {
 public:
  GoToNode(std::string id, bool waits) : id_(std::move(id)), waits_(waits) {}

  Result<Step> run(Turn& turn) const override {
    if (waits_) return Wait{};
    return on_input(turn);
  }
  // The compiler has checked that the Node exists.
  Result<Step> on_input(Turn& turn) const override { return Jump{turn.flow().find(id_)}; }
  Awaits awaits() const override { return waits_ ? Awaits::input : Awaits::nothing; }

 private:
  const std::string id_;
  const bool waits_;
};

constexpr NodeField go_to_fields[]{
    {"node", "id", "The id of a Node of this Flow. Required."},
    {"wait", "true or false",
     "Wait for the next input first, and continue there with it. Default false."}};

}  // namespace

constinit const NodeType go_to_node{
    .name = "goTo",
    .summary = "Continues at another Node of the same Flow, at once or with the next input.",
    .shorthand = "node",
    .fields = go_to_fields,
    .example = "- goTo: {node: ask, wait: true}\n",
    .create = [](NodeConfig& config) -> NodePtr {
      config.never_continues();
      return std::make_unique<const GoToNode>(config.node_id("node"), config.flag("wait", false));
    }};

}  // namespace conversed::flows
