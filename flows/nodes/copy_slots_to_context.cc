#include <algorithm>
#include <array>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::array<std::string_view, 3> modes{"append", "keep", "replace"};
constexpr std::array<std::string_view, 2> forms{"keyphrases", "slots"};

struct CopySlots {
  std::vector<std::string> slots;  // empty: all
  std::string mode;
  bool keyphrases = false;
  expression::Path into;                     // below `context`; a slot's name is put behind it
  Result<expression::Expression> stored_in;  // reads `into`

  // Other slots that are stored there stay, so the place is read, changed and written whole.
  Result<void> operator()(Turn& turn) const {
    auto value = stored_in ? stored_in->evaluate(turn.scope()) : nlohmann::json();
    auto kept = value && value->is_object() ? std::move(*value) : nlohmann::json::object();
    for (const auto& [slot, hits] : turn.input_object()["slots"].items()) {
      if (slots.empty() || std::ranges::find(slots, slot) != slots.end()) take(kept[slot], hits);
    }
    return kept.empty() ? Result<void>() : turn.assign(into, std::move(kept));
  }

  void take(nlohmann::json& slot, const nlohmann::json& hits) const {
    if (mode == "keep" && !slot.is_null()) return;
    if (mode != "append" || !slot.is_array()) slot = nlohmann::json::array();
    for (const auto& hit : hits) {
      if (!hit.is_object()) continue;
      slot.push_back(keyphrases ? hit.value("keyphrase", nlohmann::json()) : hit);
    }
  }
};

NodePtr create_copy_slots_to_context(NodeConfig& config) {
  auto into = config.path_or("storeIn", "context.slots");
  if (into.root() != expression::Path::Root::context) {
    config.problem("storeIn", "must be a place in the context, such as context.slots");
  }
  auto stored_in = expression::Expression::compile(into.text());
  return node_of(CopySlots{.slots = config.names("slots"),
                           .mode = config.choice("mode", modes, "replace"),
                           .keyphrases = config.choice("as", forms, "slots") == "keyphrases",
                           .into = std::move(into),
                           .stored_in = std::move(stored_in)});
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
