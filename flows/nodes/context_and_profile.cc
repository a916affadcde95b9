// Nodes that write to the context and to the profile.
#include <utility>
#include <vector>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr char context_root[] = "context";
constexpr char profile_root[] = "profile";

// All values are computed before the first is written, because a mapping has no order.
// Kept by: ContextNodes.MakeAllValuesBeforeTheFirstIsWritten.
template <const char* root>
struct WriteNode final : Node {
  std::vector<std::pair<expression::Path, expression::JsonTemplate>> assignments;

  void check(NodeConfig& config) { assignments = config.assignments(root); }

  Result<Step> run(Turn& turn) const override {
    std::vector<nlohmann::json> values;
    for (const auto& [path, value] : assignments) values.push_back(value.value(turn.scope()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto done = turn.assign(assignments[i].first, std::move(values[i]));
      if (!done) return model::fail(done.error());
    }
    return Continue{};
  }
};

// A missing value is no error.
template <const char* root>
struct RemoveNode final : Node {
  std::vector<expression::Path> places;

  void check(NodeConfig& config) { places = config.places(root); }

  Result<Step> run(Turn& turn) const override {
    for (const auto& place : places) turn.erase(place);
    return Continue{};
  }
};

}  // namespace

constinit const NodeType add_to_context_node{
    .name = "addToContext", .form = Form::any_mapping, .create = create<WriteNode<context_root>>};

constinit const NodeType update_profile_node{
    .name = "updateProfile", .form = Form::any_mapping, .create = create<WriteNode<profile_root>>};

constinit const NodeType remove_from_context_node{
    .name = "removeFromContext", .form = Form::texts, .create = create<RemoveNode<context_root>>};

constinit const NodeType remove_from_profile_node{
    .name = "removeFromProfile", .form = Form::texts, .create = create<RemoveNode<profile_root>>};

constinit const NodeType reset_context_node{.name = "resetContext",
                                            .create = create<ChangeNode<&Turn::reset_context>>};

constinit const NodeType reset_profile_node{.name = "resetProfile",
                                            .create = create<ChangeNode<&Turn::reset_profile>>};

}  // namespace conversed::flows
