// Says something to the user and goes on.
#include "flows/node_types.h"

namespace conversed::flows {
namespace {

struct Saying {
  std::vector<expression::Template> alternatives;
  std::optional<expression::JsonTemplate> data;
  std::optional<expression::JsonTemplate> quick_replies;
};

class SayNode final : public Node {
 public:
  explicit SayNode(Saying saying) : saying_(std::move(saying)) {}

  Result<Step> run(Turn& turn) const override {
    std::string text;
    if (!saying_.alternatives.empty()) {
      const std::size_t count = saying_.alternatives.size();
      const std::size_t chosen = count == 1 ? 0 : turn.random_below(count);
      text = saying_.alternatives[chosen].render(turn.scope());
    }
    nlohmann::json data;
    if (saying_.data) data = saying_.data->value(turn.scope());
    if (saying_.quick_replies) add_quick_replies(turn, data);
    if (auto done = turn.output(std::move(text), std::move(data)); !done) {
      return model::fail(done.error());
    }
    return Continue{};
  }

 private:
  // A reply that is a bare text sends that text.
  void add_quick_replies(Turn& turn, nlohmann::json& data) const {
    auto replies = saying_.quick_replies->value(turn.scope());
    for (auto& reply : replies) {
      if (!reply.is_object()) reply = {{"text", reply}};
      if (!reply.contains("value")) reply["value"] = reply["text"];
    }
    if (!data.is_object()) data = nlohmann::json::object();
    data["quickReplies"] = std::move(replies);
  }

  const Saying saying_;
};

void check_quick_replies(NodeConfig& config) {
  const auto list = config.find("quickReplies");
  if (!list) return;
  if (!list->value().is_array()) return list->problem("expected a list");
  for (std::size_t i = 0; i < list->value().items().size(); ++i) {
    const View reply = list->item(i);
    if (reply.value().is_text()) continue;
    const Fields fields(reply, {"text", "value"});
    (void)fields.text("text");
  }
  const auto data = config.find("data");
  if (data && !data->value().is_object()) {
    data->problem("has to be a mapping: the quick replies are added to it");
  }
}

std::unique_ptr<const Node> create(NodeConfig& config) {
  Saying saying;
  saying.data = config.json_template("data");
  saying.quick_replies = config.json_template("quickReplies");
  check_quick_replies(config);
  // Data may be all there is to say.
  if (!saying.data || config.has("text")) saying.alternatives = config.alternatives("text");
  return std::make_unique<const SayNode>(std::move(saying));
}

constexpr NodeField fields[]{
    {"text", "template or list", "What is said; one of a list is chosen. Required without data."},
    {"data", "JSON template", "What programs at the other end get beside the text."},
    {"quickReplies", "list",
     "Texts, or mappings of `text` and `value`; they go out as `data.quickReplies`."}};

}  // namespace

constinit const NodeType say_node{
    .name = "say",
    .summary = "Says something to the user and goes on.",
    .shorthand = "text",
    .fields = fields,
    .example =
        "- say:\n"
        "    text: [\"Hello {{profile.name}}\", \"Hi {{profile.name}}\"]\n"
        "    quickReplies: [Orders, {text: Help, value: help me}]\n",
    .create = create};

}  // namespace conversed::flows
