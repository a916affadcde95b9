#include "flows/expression/text.h"
#include "flows/node_types.h"
#include "flows/regex.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_hits = 20;

struct RegexSlotFillerNode final : Node {
  std::optional<Regex> pattern;
  std::string slot;
  int group = 0;
  bool ignore_case = false;
  std::optional<expression::Path> store_in;

  void check(NodeConfig& config) {
    const auto at = config.find("pattern");
    if (at) pattern = config.regex_at(*at, ignore_case ? Regex::Case::ignored : Regex::Case::kept);
  }

  Result<Step> run(Turn& turn) const override {
    const auto matches =
        pattern->find_all(turn.input_text(), max_hits, Regex::max_text_bytes, &turn.budget());
    if (!matches) return turn.failure(matches.error().code, matches.error().message);
    for (const auto& match : *matches) turn.add_slot(slot, hit(match, matches->size()));
    if (matches->empty() || !store_in) return Continue{};
    return step_after(turn.assign(*store_in, found(matches->front())));
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

constexpr NodeField regex_slot_filler_fields[]{
    required("pattern").as(Form::regex),
    required<&RegexSlotFillerNode::slot, &NodeConfig::slot>("slot"),
    optional<&RegexSlotFillerNode::group>("group").within(0, 20).by_default(0),
    optional<&RegexSlotFillerNode::ignore_case>("ignoreCase").by_default(true),
    optional<&RegexSlotFillerNode::store_in>("storeIn")};

}  // namespace

constinit const NodeType regex_slot_filler_node{.name = "regexSlotFiller",
                                                .fields = regex_slot_filler_fields,
                                                .create = create<RegexSlotFillerNode>};

}  // namespace conversed::flows
