#include <algorithm>
#include <array>

#include "flows/node_types.h"
#include "flows/nodes/output_parts.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::array<std::string_view, 3> orders{"random", "inTurn", "oneByOne"};

struct SayNode final : Node {
  std::vector<LocalText> alternatives;
  std::string order;
  std::optional<expression::JsonTemplate> data;
  OutputPart quick_replies;
  OutputPart cards;
  OutputPart image;
  OutputPart file;

  void check(NodeConfig& config) const {
    const bool has_parts = quick_replies || cards || image || file;
    // An output may have only data.
    if (!data && !cards && !image && !file) (void)config.require("text");
    const auto at = config.find("data");
    if (has_parts && at && !at->value().is_object()) {
      at->problem("must be a mapping, since buttons, cards, images and files are added to it");
    }
  }

  Result<Step> run(Turn& turn) const override {
    std::string text;
    if (!alternatives.empty()) {
      auto chosen = choose(turn);
      if (!chosen) return model::fail(chosen.error());
      text = turn.worded(alternatives[*chosen]);
    }
    auto value = data ? data->value(turn.scope()) : nlohmann::json();
    auto added = add_part(turn, quick_replies, "quickReplies", &buttons_from, value);
    if (added) added = add_part(turn, cards, "cards", &cards_from, value);
    if (added) added = add_part(turn, image, "image", &link_from, value);
    if (added) added = add_part(turn, file, "file", &link_from, value);
    if (!added) return model::fail(added.error());
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
};

constexpr NodeField say_fields[]{
    optional<&SayNode::alternatives>("text"),
    optional<&SayNode::order>("order").one_of(orders).by_default("random"),
    optional<&SayNode::data>("data"),
    optional<&SayNode::quick_replies, &read_quick_replies>("quickReplies")
        .as(Form::text_or_texts_and_mappings)
        .of(button_keys),
    optional<&SayNode::cards, &read_cards>("cards").as(Form::text_or_mappings).of(card_keys),
    optional<&SayNode::image, &read_image>("image").as(Form::text_or_mapping).of(image_keys),
    optional<&SayNode::file, &read_file>("file").as(Form::text_or_mapping).of(file_keys)};

}  // namespace

constinit const NodeType say_node{
    .name = "say", .shorthand = "text", .fields = say_fields, .create = create<SayNode>};

}  // namespace conversed::flows
