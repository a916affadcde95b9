// `setState` and `resetState`.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_bytes = 200;

NodePtr create_set_state(NodeConfig& config) {
  return node_of([name = config.text_template("state")](Turn& turn) -> Result<void> {
    auto state = name.render(turn.scope());
    if (state.size() > max_bytes) {
      return turn.failure(model::Errc::too_large, "the state has more than 200 bytes; shorten it");
    }
    turn.set_state(state == default_state ? "" : std::move(state));
    return {};
  });
}

constexpr NodeField set_state_fields[]{
    {"state", "template", "The state, at most 200 bytes. An empty one is `default`. Required."}};

}  // namespace

constinit const NodeType set_state_node{
    .name = "setState",
    .summary =
        "Sets `input.state`. The session keeps it until the next `setState`. At first it is "
        "`default`.",
    .shorthand = "state",
    .fields = set_state_fields,
    .example = "- setState: ordering\n",
    .create = create_set_state};

constinit const NodeType reset_state_node{.name = "resetState",
                                          .summary = "Sets `input.state` back to `default`.",
                                          .free_form = true,
                                          .example = "- resetState: true\n",
                                          .create = changes<&Turn::reset_state>};

}  // namespace conversed::flows
