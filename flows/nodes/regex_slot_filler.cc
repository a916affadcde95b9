#include "flows/expression/text.h"
#include "flows/node_types.h"
#include "flows/regex.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_hits = 20;

struct Filling {
  std::optional<Regex> pattern;
  std::string slot;
  int group = 0;
  std::optional<expression::Path> store_in;
};

class RegexSlotFillerNode final : public Node {
 public:
  explicit RegexSlotFillerNode(Filling filling) : filling_(std::move(filling)) {}

  Result<Step> run(Turn& turn) const override {
    const auto found_all = filling_.pattern->find_all(turn.input_text(), max_hits,
                                                      Regex::max_text_bytes, &turn.budget());
    if (!found_all) return turn.failure(found_all.error().code, found_all.error().message);
    const auto& matches = *found_all;
    for (const auto& match : matches) turn.add_slot(filling_.slot, hit(match, matches.size()));
    if (matches.empty() || !filling_.store_in) return Continue{};
    return step_after(turn.assign(*filling_.store_in, found(matches.front())));
  }

 private:
  [[nodiscard]] const std::string& found(const Regex::Match& match) const {
    const auto group = static_cast<std::size_t>(filling_.group);
    return group == 0 || group > match.groups.size() ? match.text : match.groups[group - 1];
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

  const Filling filling_;
};

NodePtr create_regex_slot_filler(NodeConfig& config) {
  (void)config.require("slot");
  (void)config.require("pattern");
  const auto which = config.flag("ignoreCase", true) ? Regex::Case::ignored : Regex::Case::kept;
  Filling filling{.pattern = config.regex("pattern", which),
                  .slot = config.slot("slot"),
                  .group = config.integer("group", 0, 0, 20),
                  .store_in = config.path("storeIn")};
  return std::make_unique<const RegexSlotFillerNode>(std::move(filling));
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
