#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::string_view resumed_by =
    R"(input.source == "inject" && input.data.handover == "resume")";

// During the handover, people reach the user by notify.
struct HandoverNode final : Node {
  std::optional<LocalText> text;
  std::optional<expression::JsonTemplate> data;
  expression::Expression resume_if = std::move(*expression::Expression::compile(resumed_by));

  Result<Step> run(Turn& turn) const override {
    nlohmann::json told = {{"status", "requested"}};
    if (data) told["data"] = data->value(turn.scope());
    return tell(turn, text ? turn.worded(*text) : "", std::move(told), Wait{});
  }

  Result<Step> on_input(Turn& turn) const override {
    if (resume_if.truthy(turn.scope())) {
      turn.take_input();
      return tell(turn, "", {{"status", "ended"}}, Continue{});
    }
    const auto& input = turn.input_object();
    return tell(turn, "",
                {{"status", "input"},
                 {"source", input["source"]},
                 {"text", input["text"]},
                 {"data", input["data"]}},
                Wait{});
  }

  Awaits awaits() const override { return Awaits::input; }

 private:
  static Result<Step> tell(Turn& turn, std::string said, nlohmann::json told, Step then) {
    return step_after(turn.output(std::move(said), {{"handover", std::move(told)}}),
                      std::move(then));
  }
};

constexpr NodeField handover_fields[]{optional<&HandoverNode::text>("text"),
                                      optional<&HandoverNode::data>("data"),
                                      optional<&HandoverNode::resume_if>("resumeIf")};

}  // namespace

constinit const NodeType handover_node{.name = "handover",
                                       .shorthand = "text",
                                       .fields = handover_fields,
                                       .create = create<HandoverNode>};

}  // namespace conversed::flows
