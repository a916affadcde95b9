#include "flows/expression/text.h"
#include "flows/node_types.h"
#include "flows/regex.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_hits = 20;

struct FillSlot {
  std::optional<Regex> pattern;
  std::string slot;
  int group = 0;
  std::optional<expression::Path> store_in;

  Result<void> operator()(Turn& turn) const {
    const auto matches =
        pattern->find_all(turn.input_text(), max_hits, Regex::max_text_bytes, &turn.budget());
    if (!matches) return turn.failure(matches.error().code, matches.error().message);
    for (const auto& match : *matches) turn.add_slot(slot, hit(match, matches->size()));
    if (matches->empty() || !store_in) return {};
    return turn.assign(*store_in, found(matches->front()));
  }

  [[nodiscard]] const std::string& found(const Regex::Match& match) const {
    const auto number = static_cast<std::size_t>(group);
    return number == 0 || number > match.groups.size() ? match.text : match.groups[number - 1];
  }

  [[nodiscard]] nlohmann::json hit(const Regex::Match& match, std::size_t count) const {
    return {{"keyphrase", found(match)},
            {"synonym", match.text},
            {"lower", expression::to_lower(found(match))},
            {"count", count},
            {"neg", false},
            {"data", {{"groups", match.groups}}},
            {"offset", {{"start", match.begin}, {"end", match.end}}},
            {"lexiconId", nullptr}};
  }
};

NodePtr create_regex_slot_filler(NodeConfig& config) {
  (void)config.require("slot");
  (void)config.require("pattern");
  const auto which = config.flag("ignoreCase", true) ? Regex::Case::ignored : Regex::Case::kept;
  return node_of(FillSlot{.pattern = config.regex("pattern", which),
                          .slot = config.slot("slot"),
                          .group = config.integer("group", 0, 0, 20),
                          .store_in = config.path("storeIn")});
}

constexpr NodeField regex_slot_filler_fields[]{
    {"pattern", "regular expression",
     "In the syntax of Perl and Java, at most 1000 bytes. It searches the first 4 KiB of "
     "`input.text`. A pattern that takes too many steps for a text fails the Turn. Required."},
    {"slot", "name", "The slot of `input.slots` that gets the hits, at most 20. Required."},
    {"group", "number", "The number of the parentheses with the keyphrase. Default 0: the match."},
    {"ignoreCase", "true or false", "Default true."},
    {"storeIn", "path", "Where the first keyphrase is stored as well."}};

}  // namespace

constinit const NodeType regex_slot_filler_node{
    .name = "regexSlotFiller",
    .summary =
        "Fills a slot with the matches of a regular expression, such as order numbers. "
        "`data.groups` of a hit holds the texts of its parentheses.",
    .fields = regex_slot_filler_fields,
    .example =
        "- regexSlotFiller: {pattern: '\\b[A-Z]-\\d{3,6}\\b', slot: orderId, storeIn: "
        "context.orderId}\n",
    .create = create_regex_slot_filler};

}  // namespace conversed::flows
