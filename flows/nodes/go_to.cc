// Goes on at another Node of the same Flow. Loops end at the Turn's limits.
#include "flows/node_types.h"

namespace conversed::flows {
namespace {

class GoToNode final : public Node {
 public:
  explicit GoToNode(std::string id) : id_(std::move(id)) {}

  // The compiler has seen to it that the Node is there.
  Result<Step> run(Turn& turn) const override { return Jump{turn.flow().find(id_)}; }

 private:
  const std::string id_;
};

std::unique_ptr<const Node> create(NodeConfig& config) {
  return std::make_unique<const GoToNode>(config.node_id("node"));
}

constexpr NodeField fields[]{{"node", "id", "The id of a Node of this Flow; required."}};

}  // namespace

constinit const NodeType go_to_node{.name = "goTo",
                                    .summary = "Goes on at another Node of the same Flow.",
                                    .shorthand = "node",
                                    .fields = fields,
                                    .example = "- goTo: ask\n",
                                    .create = create};

}  // namespace conversed::flows
