// The Nodes `followUp` and `cancelFollowUp`.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::chrono::milliseconds shortest_silence = std::chrono::seconds(1);
constexpr std::chrono::milliseconds longest_silence = std::chrono::hours(24 * 366);

struct FollowUpNode final : Node {
  std::chrono::milliseconds after{};
  std::optional<LocalText> text;
  std::string flow;  // its name; empty: none
  std::optional<expression::JsonTemplate> data;
  std::optional<std::chrono::milliseconds> expires_after;

  void check(NodeConfig& config) const {
    // With a Flow the text is the Flow's input and may be missing.
    if (!config.has("flow")) (void)config.require("text");
    if (expires_after && *expires_after < after) {
      config.problem(
          "expiresAfter",
          "is shorter than `after`: the follow-up would expire before it is due; make it longer");
    }
  }

  Result<Step> run(Turn& turn) const override {
    FollowUpWish wish{.after = after, .expires_after = expires_after};
    if (text) wish.text = turn.worded(*text);
    if (data) wish.data = data->value(turn.scope());
    if (!flow.empty()) {
      const auto& flows = turn.assets().flow_ids;
      const auto found = flows.find(flow);
      if (found == flows.end()) {
        return turn.failure(model::Errc::invalid_argument, "there is no Flow '" + flow + "'");
      }
      wish.flow_id = found->second;
    }
    return step_after(turn.follow_up(std::move(wish)));
  }
};

constexpr NodeField follow_up_fields[]{
    required<&FollowUpNode::after>("after").within(shortest_silence, longest_silence),
    optional<&FollowUpNode::text>("text"),
    optional<&FollowUpNode::flow, &NodeConfig::flow_name>("flow"),
    optional<&FollowUpNode::data>("data"),
    optional<&FollowUpNode::expires_after>("expiresAfter")
        .within(shortest_silence, longest_silence)};

}  // namespace

constinit const NodeType follow_up_node{
    .name = "followUp", .fields = follow_up_fields, .create = create<FollowUpNode>};

constinit const NodeType cancel_follow_up_node{
    .name = "cancelFollowUp", .create = create<ChangeNode<&Turn::cancel_follow_ups>>};

}  // namespace conversed::flows
