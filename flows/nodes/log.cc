#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

class LogNode final : public Node {
 public:
  explicit LogNode(expression::Template text) : text_(std::move(text)) {}

  Result<Step> run(Turn& turn) const override {
    turn.log(text_.render(turn.scope()));
    return Continue{};
  }

 private:
  const expression::Template text_;
};

constexpr NodeField log_fields[]{
    {"text", "template", "The line. It is cut after 1000 bytes. Required."}};

}  // namespace

constinit const NodeType log_node{
    .name = "log",
    .summary = "Writes a line to the daemon's log.",
    .shorthand = "text",
    .fields = log_fields,
    .example = "- log: \"order {{input.data.orderId}} came in\"\n",
    .create = [](NodeConfig& config) -> NodePtr {
      return std::make_unique<const LogNode>(config.text_template("text"));
    }};

}  // namespace conversed::flows
