#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

constexpr NodeField log_fields[]{
    {"text", "template", "The line. It is cut after 1000 bytes. Required."}};

constinit const NodeType log_node{
    .name = "log",
    .summary = "Writes a line to the daemon's log.",
    .shorthand = "text",
    .fields = log_fields,
    .example = "- log: \"order {{input.data.orderId}} came in\"\n",
    .create = [](NodeConfig& config) {
      return node_of([text = config.text_template("text")](Turn& turn) {
        turn.log(text.render(turn.scope()));
      });
    }};

}  // namespace conversed::flows
