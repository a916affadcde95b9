// `followUp` and `cancelFollowUp`.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::chrono::milliseconds shortest = std::chrono::seconds(1);
constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 366);

struct FollowUp {
  std::chrono::milliseconds after{};
  std::optional<std::chrono::milliseconds> expires_after;
  std::optional<expression::Template> text;
  std::string flow;  // its name; empty: none
  std::optional<expression::JsonTemplate> data;

  Result<void> operator()(Turn& turn) const {
    FollowUpWish wish{.after = after, .expires_after = expires_after};
    if (text) wish.text = text->render(turn.scope());
    if (data) wish.data = data->value(turn.scope());
    if (!flow.empty()) {
      const auto& flows = turn.assets().flow_ids;
      const auto found = flows.find(flow);
      if (found == flows.end()) {
        return turn.failure(model::Errc::invalid_argument, "there is no Flow '" + flow + "'");
      }
      wish.flow_id = found->second;
    }
    return turn.follow_up(std::move(wish));
  }
};

NodePtr create_follow_up(NodeConfig& config) {
  FollowUp wanted;
  wanted.after = config.duration("after", std::nullopt, shortest, longest);
  if (config.has("expiresAfter")) {
    wanted.expires_after = config.duration("expiresAfter", std::nullopt, shortest, longest);
    if (*wanted.expires_after < wanted.after) {
      config.problem(
          "expiresAfter",
          "is shorter than `after`: the follow-up would expire before it is due; make it longer");
    }
  }
  if (config.has("flow")) wanted.flow = config.flow_name("flow");
  // With a Flow the text is its input, and may be missing.
  wanted.text =
      config.has("flow") ? config.optional_template("text") : config.text_template("text");
  wanted.data = config.json_template("data");
  return node_of(std::move(wanted));
}

constexpr NodeField follow_up_fields[]{
    {"after", "duration", "The silence, counted from this input; 1s to 366d. Required."},
    {"text", "template", "The message, or the `input.text` of `flow`. Required without `flow`."},
    {"flow", "name", "The Flow that runs instead, with `input.source` = `followUp`."},
    {"data", "JSON template", "The data of the output, or the Flow's `input.data`."},
    {"expiresAfter", "duration", "Counted like `after`. A follow-up that comes later is dropped."}};

}  // namespace

constinit const NodeType follow_up_node{
    .name = "followUp",
    .summary =
        "Plans a message to the user for the case that the user says nothing meanwhile. It "
        "replaces the project's journey.",
    .fields = follow_up_fields,
    .example =
        "- followUp:\n"
        "    after: 20m\n"
        "    text: \"Are you still there, {{profile.name}}?\"\n"
        "    expiresAfter: 4h\n",
    .create = create_follow_up};

constinit const NodeType cancel_follow_up_node{
    .name = "cancelFollowUp",
    .summary =
        "Cancels all follow-ups of the session. No journey begins before the user's next message.",
    .free_form = true,
    .example = "- cancelFollowUp: true\n",
    .create = changes<&Turn::cancel_follow_ups>};

}  // namespace conversed::flows
