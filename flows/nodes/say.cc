#include <algorithm>
#include <array>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::array<std::string_view, 3> orders{"inTurn", "oneByOne", "random"};
constexpr Key quick_reply_keys[]{must_have("text", Form::text), may_have("value", Form::anything)};

struct SayNode final : Node {
  std::vector<expression::Template> alternatives;
  std::string order;
  std::optional<expression::JsonTemplate> data;
  std::optional<expression::JsonTemplate> quick_replies;

  void check(NodeConfig& config) const {
    if (!data) (void)config.require("text");  // an output may have only data
    const auto list = config.find("quickReplies");
    if (!list || !list->expect_list()) return;
    for (const View& reply : list->items()) {
      if (reply.value().is_text()) continue;
      const Fields fields(reply, quick_reply_keys);
      (void)fields.text("text");
    }
    const auto at = config.find("data");
    if (at && !at->value().is_object()) {
      at->problem("must be a mapping, since the quick replies are added to it");
    }
  }

  Result<Step> run(Turn& turn) const override {
    std::string text;
    if (!alternatives.empty()) {
      auto chosen = choose(turn);
      if (!chosen) return model::fail(chosen.error());
      text = alternatives[*chosen].render(turn.scope());
    }
    auto value = data ? data->value(turn.scope()) : nlohmann::json();
    if (quick_replies) add_quick_replies(turn, value);
    return step_after(turn.output(std::move(text), std::move(value)));
  }

 private:
  // The alternative to say now. The memory of a fixed order is the number of alternatives said.
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

  // A reply that is only a text sends that text.
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

constexpr NodeField say_fields[]{
    optional<&SayNode::alternatives>("text"),
    optional<&SayNode::order>("order").one_of(orders).by_default("random"),
    optional<&SayNode::data>("data"),
    optional<&SayNode::quick_replies>("quickReplies")
        .as(Form::texts_and_mappings)
        .of(quick_reply_keys)};

}  // namespace

constinit const NodeType say_node{
    .name = "say", .shorthand = "text", .fields = say_fields, .create = create<SayNode>};

}  // namespace conversed::flows
