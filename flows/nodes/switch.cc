// Takes the way whose text is the value's. Texts are compared exactly.
#include <unordered_map>

#include "flows/node_types.h"

namespace conversed::flows {
namespace {

// Texts stand for themselves, numbers and booleans for what they look like; nothing else has a
// case.
std::optional<std::string> case_of(const nlohmann::json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return std::nullopt;
}

class SwitchNode final : public Node {
 public:
  SwitchNode(expression::Expression on, std::vector<std::pair<std::string, NodeIndex>> cases,
             NodeIndex otherwise)
      : on_(std::move(on)), cases_(cases.begin(), cases.end()), default_(otherwise) {}

  Result<Step> run(Turn& turn) const override {
    const auto value = on_.evaluate(turn.scope());
    const auto text = value ? case_of(*value) : std::nullopt;
    const auto found = text ? cases_.find(*text) : cases_.end();
    return Jump{found == cases_.end() ? default_ : found->second};
  }

 private:
  const expression::Expression on_;
  const std::unordered_map<std::string, NodeIndex> cases_;
  const NodeIndex default_;
};

std::unique_ptr<const Node> create(NodeConfig& config) {
  auto on = config.condition("on");
  auto cases = config.branches("cases");
  return std::make_unique<const SwitchNode>(std::move(on), std::move(cases),
                                            config.branch("default"));
}

constexpr NodeField fields[]{
    {"on", "expression", "What is compared: a text, a number or a boolean. Required."},
    {"cases", "texts to nodes", "The ways; the value's text is compared exactly. Required."},
    {"default", "nodes", "Run if no case fits, or the value can't be evaluated."}};

}  // namespace

constinit const NodeType switch_node{
    .name = "switch",
    .summary = "Takes the way whose text is the value's, and then goes on behind all of them.",
    .shorthand = "",
    .fields = fields,
    .example =
        "- switch:\n"
        "    on: input.text\n"
        "    cases: {\"yes\": [{say: Good.}], \"no\": [{stop: true}]}\n"
        "    default: [{goTo: ask}]\n",
    .create = create};

}  // namespace conversed::flows
