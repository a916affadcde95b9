// Removes values from the session's context. What is not there is no error.
#include "flows/node_types.h"

namespace conversed::flows {
namespace {

class RemoveFromContextNode final : public Node {
 public:
  explicit RemoveFromContextNode(std::vector<expression::Path> places)
      : places_(std::move(places)) {}

  Result<Step> run(Turn& turn) const override {
    for (const auto& place : places_) turn.erase(place);
    return Continue{};
  }

 private:
  const std::vector<expression::Path> places_;
};

std::unique_ptr<const Node> create(NodeConfig& config) {
  return std::make_unique<const RemoveFromContextNode>(config.places("context"));
}

}  // namespace

constinit const NodeType remove_from_context_node{
    .name = "removeFromContext",
    .summary = "Removes one value, or a list of values, from the context.",
    .shorthand = "",
    .free_form = true,
    .fields = {},
    .example = "- removeFromContext: [count, cart.total]\n",
    .create = create};

}  // namespace conversed::flows
