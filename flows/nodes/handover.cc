// Hands the conversation to people: the Flow stands still, and what comes in is told to the
// webhook, until an inject gives the conversation back. What people say to the user goes by notify.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::string_view resumed_by =
    R"(input.source == "inject" && input.data.handover == "resume")";

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
    if (auto done = turn.output(std::move(text), {{"handover", std::move(told)}}); !done) {
      return model::fail(done.error());
    }
    return then;
  }

  const std::optional<expression::Template> text_;
  const std::optional<expression::JsonTemplate> data_;
  const expression::Expression resume_if_;
};

std::unique_ptr<const Node> create_handover(NodeConfig& config) {
  auto text = config.optional_template("text");
  auto data = config.json_template("data");
  auto resume_if = config.has("resumeIf") ? config.condition("resumeIf")
                                          : std::move(*expression::Expression::compile(resumed_by));
  return std::make_unique<const HandoverNode>(std::move(text), std::move(data),
                                              std::move(resume_if));
}

constexpr NodeField handover_fields[]{
    {"text", "template", "Said to the user; default: nothing."},
    {"data", "JSON template", "For the people: why, and what they should know."},
    {"resumeIf", "expression",
     "Asked of each input; true: the Flow goes on. Default: an inject with `data.handover` = "
     "`resume`."}};

}  // namespace

constinit const NodeType handover_node{
    .name = "handover",
    .summary =
        "Pauses the Flow and tells the webhook, by outputs with `data.handover`: `{status: "
        "requested, data}` at once, `{status: input, source, text, data}` for each input while it "
        "is paused, `{status: ended}` when an inject resumes it. Then the Flow goes on.",
    .shorthand = "text",
    .fields = handover_fields,
    .example =
        "- handover:\n"
        "    text: \"I get you a colleague.\"\n"
        "    data: {reason: complaint, order: \"{{context.orderId}}\"}\n",
    .create = create_handover};

}  // namespace conversed::flows
