#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// Circles end at the Turn's limits.
class ThinkNode final : public Node {
 public:
  ThinkNode(expression::Template text, std::optional<expression::JsonTemplate> data)
      : text_(std::move(text)), data_(std::move(data)) {}

  Result<Step> run(Turn& turn) const override {
    auto text = text_.render(turn.scope());
    auto data = data_ ? data_->value(turn.scope()) : nlohmann::json();
    return step_after(turn.replace_input(std::move(text), std::move(data)), Restart{});
  }

 private:
  const expression::Template text_;
  const std::optional<expression::JsonTemplate> data_;
};

constexpr NodeField think_fields[]{
    {"text", "template", "The new `input.text`. Required."},
    {"data", "JSON template", "The new `input.data`. Default: none."}};

}  // namespace

constinit const NodeType think_node{
    .name = "think",
    .summary =
        "Starts the Endpoint's Flow again at its beginning, as if the user had said something "
        "else. The lexicons search the new text for `input.slots`. All else of `input` stays.",
    .shorthand = "text",
    .fields = think_fields,
    .example = "- think: \"show me order {{context.orderId}}\"\n",
    .create = [](NodeConfig& config) -> NodePtr {
      config.never_continues();
      return std::make_unique<const ThinkNode>(config.text_template("text"),
                                               config.json_template("data"));
    }};

}  // namespace conversed::flows
