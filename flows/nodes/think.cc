#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// The Turn's limits end endless circles.
struct ThinkNode final : Node {
  expression::Template text;
  std::optional<expression::JsonTemplate> data;

  Result<Step> run(Turn& turn) const override {
    auto value = data ? data->value(turn.scope()) : nlohmann::json();
    return step_after(turn.replace_input(text.render(turn.scope()), std::move(value)), Restart{});
  }
};

constexpr NodeField think_fields[]{required<&ThinkNode::text>("text"),
                                   optional<&ThinkNode::data>("data")};

}  // namespace

constinit const NodeType think_node{.name = "think",
                                    .shorthand = "text",
                                    .continues = false,
                                    .fields = think_fields,
                                    .create = create<ThinkNode>};

}  // namespace conversed::flows
