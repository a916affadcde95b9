#include <algorithm>
#include <array>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::array<std::string_view, 3> orders{"inTurn", "oneByOne", "random"};

struct Say {
  std::vector<expression::Template> alternatives;
  std::optional<expression::JsonTemplate> data;
  std::optional<expression::JsonTemplate> quick_replies;
  std::string order;

  Result<void> operator()(Turn& turn) const {
    std::string text;
    if (!alternatives.empty()) {
      auto chosen = choose(turn);
      if (!chosen) return model::fail(chosen.error());
      text = alternatives[*chosen].render(turn.scope());
    }
    auto value = data ? data->value(turn.scope()) : nlohmann::json();
    if (quick_replies) add_quick_replies(turn, value);
    return turn.output(std::move(text), std::move(value));
  }

  // The alternative of this pass. In order, the memory is how many have been said.
  Result<std::size_t> choose(Turn& turn) const {
    const std::size_t count = alternatives.size();
    if (count == 1) return std::size_t{0};
    if (order == "random") return turn.random_below(count);
    auto memory = turn.memory();
    if (!memory) return model::fail(memory.error());
    nlohmann::json& said = **memory;
    std::size_t index = said.is_number_unsigned() ? said.get<std::size_t>() : 0;
    index = order == "inTurn" ? index % count : std::min(index, count - 1);
    said = index + 1;
    return index;
  }

  // A reply that is a bare text sends that text.
  void add_quick_replies(Turn& turn, nlohmann::json& value) const {
    auto replies = quick_replies->value(turn.scope());
    for (auto& reply : replies) {
      if (!reply.is_object()) reply = {{"text", reply}};
      if (!reply.contains("value")) reply["value"] = reply["text"];
    }
    if (!value.is_object()) value = nlohmann::json::object();
    value["quickReplies"] = std::move(replies);
  }
};

void check_quick_replies(NodeConfig& config) {
  const auto list = config.find("quickReplies");
  if (!list || !list->expect_list()) return;
  for (const View& reply : list->items()) {
    if (reply.value().is_text()) continue;
    const Fields fields(reply, {"text", "value"});
    (void)fields.text("text");
  }
  const auto data = config.find("data");
  if (data && !data->value().is_object()) {
    data->problem("must be a mapping, since the quick replies are added to it");
  }
}

NodePtr create_say(NodeConfig& config) {
  Say say{.alternatives = {},
          .data = config.json_template("data"),
          .quick_replies = config.json_template("quickReplies"),
          .order = config.choice("order", orders, "random")};
  check_quick_replies(config);
  // An output may be data alone.
  if (!say.data || config.has("text")) say.alternatives = config.alternatives("text");
  return node_of(std::move(say));
}

constexpr NodeField say_fields[]{
    {"text", "template or list", "The text. One of a list is chosen. Required without `data`."},
    {"order", "random, inTurn or oneByOne",
     "How one of a list is chosen. `inTurn` begins again after the last one, `oneByOne` repeats "
     "the last one. Default `random`."},
    {"data", "JSON template", "The data of the output."},
    {"quickReplies", "list",
     "Texts, or mappings of `text` and `value`. They go out as `data.quickReplies`."}};

}  // namespace

constinit const NodeType say_node{
    .name = "say",
    .summary = "Says something to the user and continues.",
    .shorthand = "text",
    .fields = say_fields,
    .example =
        "- say:\n"
        "    text: [\"Hello {{profile.name}}\", \"Hi {{profile.name}}\"]\n"
        "    order: inTurn\n"
        "    quickReplies: [Orders, {text: Help, value: help me}]\n",
    .create = create_say};

}  // namespace conversed::flows
