// The Nodes that write to the context and to the profile.
#include <utility>
#include <vector>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr char context_root[] = "context";
constexpr char profile_root[] = "profile";

// All values are made before the first is written, since a mapping has no order. Kept by:
// ContextNodes.MakeAllValuesBeforeTheFirstIsWritten.
template <const char* root>
NodePtr writes(NodeConfig& config) {
  return node_of([assignments = config.assignments(root)](Turn& turn) -> Result<void> {
    std::vector<nlohmann::json> values;
    for (const auto& [path, value] : assignments) values.push_back(value.value(turn.scope()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto done = turn.assign(assignments[i].first, std::move(values[i]));
      if (!done) return done;
    }
    return {};
  });
}

// A missing value is no error.
template <const char* root>
NodePtr removes(NodeConfig& config) {
  return node_of([places = config.places(root)](Turn& turn) {
    for (const auto& place : places) turn.erase(place);
  });
}

}  // namespace

constinit const NodeType add_to_context_node{
    .name = "addToContext",
    .summary =
        "Writes values into the context. A text that is one expression keeps its type. All values "
        "are made before the first is written.",
    .free_form = true,
    .example = "- addToContext: {count: \"{{(context.count || 0) + 1}}\", cart.total: 0}\n",
    .create = writes<context_root>};

constinit const NodeType update_profile_node{
    .name = "updateProfile",
    .summary = "Writes values into the user's profile, which all sessions of the user share.",
    .free_form = true,
    .example = "- updateProfile: {name: \"{{input.text}}\"}\n",
    .create = writes<profile_root>};

constinit const NodeType remove_from_context_node{
    .name = "removeFromContext",
    .summary = "Removes one value, or a list of values, from the context.",
    .free_form = true,
    .example = "- removeFromContext: [count, cart.total]\n",
    .create = removes<context_root>};

constinit const NodeType remove_from_profile_node{
    .name = "removeFromProfile",
    .summary = "Removes one value, or a list of values, from the user's profile.",
    .free_form = true,
    .example = "- removeFromProfile: [name, address.street]\n",
    .create = removes<profile_root>};

constinit const NodeType reset_context_node{
    .name = "resetContext",
    .summary = "Empties the context. The counts of `once`, `interval` and the like stay.",
    .free_form = true,
    .example = "- resetContext: true\n",
    .create = changes<&Turn::reset_context>};

constinit const NodeType reset_profile_node{
    .name = "resetProfile",
    .summary = "Empties the user's profile, for all sessions of the user.",
    .free_form = true,
    .example = "- resetProfile: true\n",
    .create = changes<&Turn::reset_profile>};

}  // namespace conversed::flows
