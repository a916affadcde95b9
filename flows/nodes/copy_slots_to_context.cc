// Keeps what the lexicons found in the input: slots are gone with the next one.
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

  // The slots that were there stay as they are, so the place is read, changed and written whole.
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
    if (auto done = turn.assign(into_, std::move(kept)); !done) return model::fail(done.error());
    return Continue{};
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

std::unique_ptr<const Node> create_copy_slots_to_context(NodeConfig& config) {
  Copying copying;
  copying.slots = config.names("slots");
  copying.mode = config.choice("mode", modes, "replace");
  copying.keyphrases = config.choice("as", forms, "slots") == "keyphrases";
  auto into = config.path_or("storeIn", "context.slots");
  if (into.root() != expression::Path::Root::context) {
    config.problem("storeIn", "has to be a place in the context");
  }
  copying.into = into.text();
  return std::make_unique<const CopySlotsToContextNode>(std::move(copying), std::move(into));
}

constexpr NodeField copy_slots_to_context_fields[]{
    {"slots", "list", "Names of slots; default: all that the input has."},
    {"storeIn", "path",
     "A place in the context; each slot goes below it by its name. Default "
     "`context.slots`."},
    {"mode", "replace, append or keep",
     "What becomes of a slot that is stored there already; default `replace`."},
    {"as", "slots or keyphrases",
     "`keyphrases` stores the main keyphrases alone; default `slots`, as in `input.slots`."}};

}  // namespace

constinit const NodeType copy_slots_to_context_node{
    .name = "copySlotsToContext",
    .summary = "Copies slots of the input into the context, where later inputs find them.",
    .shorthand = "",
    .fields = copy_slots_to_context_fields,
    .example = "- copySlotsToContext: {slots: [city], storeIn: context.wanted, mode: append}\n",
    .create = create_copy_slots_to_context};

}  // namespace conversed::flows
