#include <algorithm>
#include <array>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::array<std::string_view, 3> copy_modes{"replace", "append", "keep"};
constexpr std::array<std::string_view, 2> copied_forms{"slots", "keyphrases"};

struct CopySlotsNode final : Node {
  std::vector<std::string> slots;  // empty: all
  std::string mode;
  std::string form;
  std::optional<expression::Path> into;  // below `context`; a slot's name is appended
  expression::Expression stored_in;      // reads `into`

  void check(NodeConfig& config) {
    if (!config.has("storeIn")) {
      into = std::move(*expression::Path::compile("context.slots"));
      config.note_write(into->text());
    }
    if (!into) return;
    if (into->root() != expression::Path::Root::context) {
      config.problem("storeIn", "must be a place in the context, such as context.slots");
    }
    if (auto reads = expression::Expression::compile(into->text())) stored_in = std::move(*reads);
  }

  // Other slots at the place stay, so the whole place is read, changed and written.
  Result<Step> run(Turn& turn) const override {
    auto value = stored_in.evaluate(turn.scope());
    auto kept = value && value->is_object() ? std::move(*value) : nlohmann::json::object();
    for (const auto& [slot, hits] : turn.input_object()["slots"].items()) {
      if (slots.empty() || std::ranges::find(slots, slot) != slots.end()) take(kept[slot], hits);
    }
    if (kept.empty()) return Continue{};
    return step_after(turn.assign(*into, std::move(kept)));
  }

  void take(nlohmann::json& slot, const nlohmann::json& hits) const {
    if (mode == "keep" && !slot.is_null()) return;
    if (mode != "append" || !slot.is_array()) slot = nlohmann::json::array();
    for (const auto& hit : hits) {
      if (!hit.is_object()) continue;
      slot.push_back(form == "keyphrases" ? hit.value("keyphrase", nlohmann::json()) : hit);
    }
  }
};

constexpr NodeField copy_slots_to_context_fields[]{
    optional<&CopySlotsNode::slots>("slots"), optional<&CopySlotsNode::into>("storeIn"),
    optional<&CopySlotsNode::mode>("mode").one_of(copy_modes).by_default("replace"),
    optional<&CopySlotsNode::form>("as").one_of(copied_forms).by_default("slots")};

}  // namespace

constinit const NodeType copy_slots_to_context_node{.name = "copySlotsToContext",
                                                    .fields = copy_slots_to_context_fields,
                                                    .create = create<CopySlotsNode>};

}  // namespace conversed::flows
