// Takes another text for what the user said and starts the Endpoint's Flow again with it. Circles
// end at the Turn's limits.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class ThinkNode final : public Node {
 public:
  ThinkNode(expression::Template text, std::optional<expression::JsonTemplate> data)
      : text_(std::move(text)), data_(std::move(data)) {}

  Result<Step> run(Turn& turn) const override {
    auto text = text_.render(turn.scope());
    auto data = data_ ? data_->value(turn.scope()) : nlohmann::json();
    if (auto done = turn.replace_input(std::move(text), std::move(data)); !done) {
      return model::fail(done.error());
    }
    return Restart{};
  }

 private:
  const expression::Template text_;
  const std::optional<expression::JsonTemplate> data_;
};

std::unique_ptr<const Node> create_think(NodeConfig& config) {
  config.never_continues();
  auto text = config.text_template("text");
  return std::make_unique<const ThinkNode>(std::move(text), config.json_template("data"));
}

constexpr NodeField think_fields[]{
    {"text", "template", "The new `input.text`. Required."},
    {"data", "JSON template", "The new `input.data`; default: none."}};

}  // namespace

constinit const NodeType think_node{
    .name = "think",
    .summary =
        "Starts the Endpoint's Flow again at its beginning, as if the user had said something "
        "else; `input.slots` is found anew, all else of `input` stays.",
    .shorthand = "text",
    .fields = think_fields,
    .example = "- think: \"show me order {{context.orderId}}\"\n",
    .create = create_think};

}  // namespace conversed::flows
