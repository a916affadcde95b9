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
      return turn.failure(model::Errc::too_large, "the state has more than 200 bytes; shorten it");
    }
    turn.set_state(name == default_state ? "" : std::move(name));
    return Continue{};
  }

 private:
  const expression::Template name_;
};

constexpr NodeField set_state_fields[]{
    {"state", "template", "The state, at most 200 bytes. An empty one is `default`. Required."}};

}  // namespace

constinit const NodeType set_state_node{
    .name = "setState",
    .summary =
        "Sets `input.state`. The session keeps it until the next `setState`. At first it is "
        "`default`.",
    .shorthand = "state",
    .fields = set_state_fields,
    .example = "- setState: ordering\n",
    .create = [](NodeConfig& config) -> NodePtr {
      return std::make_unique<const SetStateNode>(config.text_template("state"));
    }};

}  // namespace conversed::flows
