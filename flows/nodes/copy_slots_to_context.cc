#include <array>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::array<std::string_view, 3> modes{"append", "keep", "replace"};
constexpr std::array<std::string_view, 2> forms{"keyphrases", "slots"};

struct Copying {
  std::vector<std::string> slots;  // empty: all
  std::string into;                // a path below `context`, which a slot's name is put behind
  std::string mode;
  bool keyphrases = false;
};

class CopySlotsToContextNode final : public Node {
 public:
  CopySlotsToContextNode(Copying copying, expression::Path into)
      : copying_(std::move(copying)), into_(std::move(into)) {}

  // Other slots that are stored there stay, so the place is read, changed and written whole.
  Result<Step> run(Turn& turn) const override {
    auto kept = stored(turn);
    for (const auto& [slot, hits] : turn.input_object()["slots"].items()) {
      const auto& wanted = copying_.slots;
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), slot) == wanted.end()) {
        continue;
      }
      take(kept[slot], hits);
    }
    if (kept.empty()) return Continue{};
    return step_after(turn.assign(into_, std::move(kept)));
  }

 private:
  nlohmann::json stored(Turn& turn) const {
    auto place = expression::Expression::compile(copying_.into);
    auto value = place ? place->evaluate(turn.scope()) : nlohmann::json();
    return value && value->is_object() ? std::move(*value) : nlohmann::json::object();
  }

  void take(nlohmann::json& slot, const nlohmann::json& hits) const {
    if (copying_.mode == "keep" && !slot.is_null()) return;
    if (copying_.mode != "append" || !slot.is_array()) slot = nlohmann::json::array();
    for (const auto& hit : hits) {
      if (!hit.is_object()) continue;
      slot.push_back(copying_.keyphrases ? hit.value("keyphrase", nlohmann::json()) : hit);
    }
  }

  const Copying copying_;
  const expression::Path into_;
};

NodePtr create_copy_slots_to_context(NodeConfig& config) {
  Copying copying;
  copying.slots = config.names("slots");
  copying.mode = config.choice("mode", modes, "replace");
  copying.keyphrases = config.choice("as", forms, "slots") == "keyphrases";
  auto into = config.path_or("storeIn", "context.slots");
  if (into.root() != expression::Path::Root::context) {
    config.problem("storeIn", "must be a place in the context, such as context.slots");
  }
  copying.into = into.text();
  return std::make_unique<const CopySlotsToContextNode>(std::move(copying), std::move(into));
}

constexpr NodeField copy_slots_to_context_fields[]{
    {"slots", "list", "Names of slots. Default: all slots of the input."},
    {"storeIn", "path",
     "A place in the context. Each slot is stored below it by its name. Default `context.slots`."},
    {"mode", "replace, append or keep",
     "What to do with a slot that is stored there already. Default `replace`."},
    {"as", "slots or keyphrases",
     "`keyphrases` stores the main keyphrases only, `slots` the hits of `input.slots`. Default "
     "`slots`."}};

}  // namespace

constinit const NodeType copy_slots_to_context_node{
    .name = "copySlotsToContext",
    .summary =
        "Copies slots of the input into the context. `input.slots` itself ends with the input.",
    .fields = copy_slots_to_context_fields,
    .example = "- copySlotsToContext: {slots: [city], storeIn: context.wanted, mode: append}\n",
    .create = create_copy_slots_to_context};

}  // namespace conversed::flows
