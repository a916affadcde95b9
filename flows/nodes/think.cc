#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

constexpr NodeField think_fields[]{
    {"text", "template", "The new `input.text`. Required."},
    {"data", "JSON template", "The new `input.data`. Default: none."}};

constinit const NodeType think_node{
    .name = "think",
    .summary =
        "Starts the Endpoint's Flow again at its beginning, as if the user had said something "
        "else. The lexicons search the new text for `input.slots`. All else of `input` stays.",
    .shorthand = "text",
    .fields = think_fields,
    .example = "- think: \"show me order {{context.orderId}}\"\n",
    .create = [](NodeConfig& config) {
      config.never_continues();
      // Circles end at the Turn's limits.
      return node_of(
          [text = config.text_template("text"), data = config.json_template("data")](Turn& turn) {
            auto said = text.render(turn.scope());
            auto value = data ? data->value(turn.scope()) : nlohmann::json();
            return step_after(turn.replace_input(std::move(said), std::move(value)), Restart{});
          });
    }};

}  // namespace conversed::flows
