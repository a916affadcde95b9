#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::string_view resumed_by =
    R"(input.source == "inject" && input.data.handover == "resume")";

// What people say to the user meanwhile goes by notify.
class HandoverNode final : public Node {
 public:
  HandoverNode(std::optional<expression::Template> text,
               std::optional<expression::JsonTemplate> data, expression::Expression resume_if)
      : text_(std::move(text)), data_(std::move(data)), resume_if_(std::move(resume_if)) {}

  Result<Step> run(Turn& turn) const override {
    auto text = text_ ? text_->render(turn.scope()) : std::string();
    nlohmann::json told = {{"status", "requested"}};
    if (data_) told["data"] = data_->value(turn.scope());
    return tell(turn, std::move(text), std::move(told), Wait{});
  }

  Result<Step> on_input(Turn& turn) const override {
    if (resume_if_.truthy(turn.scope())) {
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
  static Result<Step> tell(Turn& turn, std::string text, nlohmann::json told, Step then) {
    return step_after(turn.output(std::move(text), {{"handover", std::move(told)}}),
                      std::move(then));
  }

  const std::optional<expression::Template> text_;
  const std::optional<expression::JsonTemplate> data_;
  const expression::Expression resume_if_;
};

NodePtr create_handover(NodeConfig& config) {
  auto text = config.optional_template("text");
  auto data = config.json_template("data");
  auto resume_if = config.has("resumeIf") ? config.condition("resumeIf")
                                          : std::move(*expression::Expression::compile(resumed_by));
  return std::make_unique<const HandoverNode>(std::move(text), std::move(data),
                                              std::move(resume_if));
}

constexpr NodeField handover_fields[]{
    {"text", "template", "Said to the user. Default: nothing."},
    {"data", "JSON template", "For the people who take over."},
    {"resumeIf", "expression",
     "Evaluated for each input. If it is true, the Flow continues. Default: an inject with "
     "`data.handover` = `resume`."}};

}  // namespace

constinit const NodeType handover_node{
    .name = "handover",
    .summary =
        "Hands the conversation to people. The Flow pauses, and the webhook gets outputs with "
        "`data.handover`: `{status: requested, data}` at once, `{status: input, source, text, "
        "data}` for each input, `{status: ended}` when an inject resumes the Flow.",
    .shorthand = "text",
    .fields = handover_fields,
    .example =
        "- handover:\n"
        "    text: \"I get you a colleague.\"\n"
        "    data: {reason: complaint, order: \"{{context.orderId}}\"}\n",
    .create = create_handover};

}  // namespace conversed::flows
