#include <map>

#include "flows/node_types.h"
#include "flows/turn/turn.h"
#include "store/text/words.h"

namespace conversed::flows {
namespace {

// The text of a text, number or boolean. Other values match no case.
std::optional<std::string> case_of(const nlohmann::json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return std::nullopt;
}

struct SwitchNode final : Node {
  expression::Expression on;
  bool loosely = false;
  std::map<std::string, NodeIndex> cases;
  NodeIndex otherwise = end_of_flow;

  // `text`, `type` and `state` mean the members of `input`.
  static void read_subject(NodeConfig& config, const View& at, expression::Expression& into) {
    const bool is_member = at.value().scalar() == "text" || at.value().scalar() == "type" ||
                           at.value().scalar() == "state";
    into = is_member ? std::move(*expression::Expression::compile("input." + at.value().text()))
                     : config.condition_at(at);
  }

  static void read_cases(NodeConfig& config, const View& at,
                         std::map<std::string, NodeIndex>& into) {
    const auto ignore_case = config.find("ignoreCase");
    const bool loosely = ignore_case && ignore_case->value().scalar() == true;
    for (auto& [text, to] : config.branches("cases", at)) {
      const std::string compared = loosely ? text::phrase_of(text) : text;
      if (compared.empty() && loosely) {
        at.problem("the case '" + text + "' has no words to compare; write a word");
      } else if (!into.emplace(compared, to).second) {
        at.problem("the case '" + text + "' is the same as another one; remove one");
      }
    }
  }

  Result<Step> run(Turn& turn) const override {
    const auto value = on.evaluate(turn.scope());
    auto text = value ? case_of(*value) : std::nullopt;
    if (text && loosely && turn.budget().step(text->size())) text = text::phrase_of(*text);
    const auto to = text ? cases.find(*text) : cases.end();
    return Jump{to == cases.end() ? otherwise : to->second};
  }
};

constexpr NodeField switch_fields[]{
    required<&SwitchNode::on, &SwitchNode::read_subject>("on"),
    required<&SwitchNode::cases, &SwitchNode::read_cases>("cases").as(Form::nodes_map),
    optional<&SwitchNode::loosely>("ignoreCase").by_default(false),
    optional<&SwitchNode::otherwise>("default")};

}  // namespace

constinit const NodeType switch_node{
    .name = "switch", .continues = false, .fields = switch_fields, .create = create<SwitchNode>};

}  // namespace conversed::flows
