#include <map>

#include "flows/node_types.h"
#include "flows/turn/turn.h"
#include "store/text/words.h"

namespace conversed::flows {
namespace {

// The text of a text, number or boolean. Other values have no case.
std::optional<std::string> case_of(const nlohmann::json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return std::nullopt;
}

// `text`, `type` and `state` stand for the members of `input`.
expression::Expression subject(NodeConfig& config) {
  const auto on = config.find("on");
  if (on && on->value().is_text()) {
    const std::string& word = on->value().text();
    if (word == "text" || word == "type" || word == "state") {
      return std::move(*expression::Expression::compile("input." + word));
    }
  }
  return config.condition("on");
}

NodePtr create_switch(NodeConfig& config) {
  config.never_continues();
  auto on = subject(config);
  const bool loosely = config.flag("ignoreCase", false);
  std::map<std::string, NodeIndex> cases;
  for (auto& [text, to] : config.branches("cases")) {
    const std::string compared = loosely ? text::phrase_of(text) : text;
    if (compared.empty() && loosely) {
      config.problem("cases", "the case '" + text + "' has no words to compare; write a word");
    } else if (!cases.emplace(compared, to).second) {
      config.problem("cases", "the case '" + text + "' is the same as another one; remove one");
    }
  }
  return node_of([on = std::move(on), cases = std::move(cases), loosely,
                  otherwise = config.branch("default")](Turn& turn) -> Step {
    const auto value = on.evaluate(turn.scope());
    auto text = value ? case_of(*value) : std::nullopt;
    if (text && loosely && turn.budget().step(text->size())) text = text::phrase_of(*text);
    const auto found = text ? cases.find(*text) : cases.end();
    return Jump{found == cases.end() ? otherwise : found->second};
  });
}

constexpr NodeField switch_fields[]{
    {"on", "expression, text, type or state",
     "The value: a text, a number or a boolean. `text`, `type` and `state` stand for these members "
     "of `input`. Required."},
    {"cases", "texts to nodes", "The branches. The value's text is compared exactly. Required."},
    {"ignoreCase", "true or false",
     "Compare words only, without case, accents and punctuation: `Yes!` is `yes`. Default false."},
    {"default", "nodes", "Run if no case is equal, or the expression fails."}};

}  // namespace

constinit const NodeType switch_node{
    .name = "switch",
    .summary = "Takes the branch of a value, then continues behind all branches.",
    .fields = switch_fields,
    .example =
        "- switch:\n"
        "    on: text\n"
        "    ignoreCase: true\n"
        "    cases: {\"yes\": [{say: Good.}], \"no\": [{stop: true}]}\n"
        "    default: [{goTo: ask}]\n",
    .create = create_switch};

}  // namespace conversed::flows
