// Sets the state of the conversation, a word for Flows to decide by.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_bytes = 200;

class SetStateNode final : public Node {
 public:
  explicit SetStateNode(expression::Template name) : name_(std::move(name)) {}

  Result<Step> run(Turn& turn) const override {
    auto name = name_.render(turn.scope());
    if (name.size() > max_bytes) {
      return turn.failure(model::Errc::too_large, "a state of more than 200 bytes");
    }
    turn.set_state(name == default_state ? "" : std::move(name));
    return Continue{};
  }

 private:
  const expression::Template name_;
};

std::unique_ptr<const Node> create_set_state(NodeConfig& config) {
  return std::make_unique<const SetStateNode>(config.text_template("state"));
}

constexpr NodeField set_state_fields[]{
    {"state", "template", "Any word, at most 200 bytes; an empty one is `default`. Required."}};

}  // namespace

constinit const NodeType set_state_node{
    .name = "setState",
    .summary =
        "Sets `input.state`, which the session keeps until it is set again; at first it is "
        "`default`.",
    .shorthand = "state",
    .fields = set_state_fields,
    .example = "- setState: ordering\n",
    .create = create_set_state};

}  // namespace conversed::flows
