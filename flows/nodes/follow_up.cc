// Asks for a follow-up, should the user fall silent. The Turn goes on at once.
#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::chrono::milliseconds shortest = std::chrono::seconds(1);
constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 366);

struct Wanted {
  std::chrono::milliseconds after{};
  std::optional<std::chrono::milliseconds> expires_after;
  std::optional<expression::Template> text;
  std::string flow;  // its name; empty: none
  std::optional<expression::JsonTemplate> data;
};

class FollowUpNode final : public Node {
 public:
  explicit FollowUpNode(Wanted wanted) : wanted_(std::move(wanted)) {}

  Result<Step> run(Turn& turn) const override {
    FollowUpWish wish{.after = wanted_.after, .expires_after = wanted_.expires_after};
    if (wanted_.text) wish.text = wanted_.text->render(turn.scope());
    if (wanted_.data) wish.data = wanted_.data->value(turn.scope());
    if (!wanted_.flow.empty()) {
      const auto& flows = turn.assets().flow_ids;
      const auto found = flows.find(wanted_.flow);
      if (found == flows.end()) {
        return turn.failure(model::Errc::invalid_argument,
                            "there is no Flow '" + wanted_.flow + "'");
      }
      wish.flow_id = found->second;
    }
    if (auto asked = turn.follow_up(std::move(wish)); !asked) return model::fail(asked.error());
    return Continue{};
  }

 private:
  const Wanted wanted_;
};

std::unique_ptr<const Node> create_follow_up(NodeConfig& config) {
  Wanted wanted;
  wanted.after = config.duration("after", std::nullopt, shortest, longest);
  if (config.has("expiresAfter")) {
    wanted.expires_after = config.duration("expiresAfter", std::nullopt, shortest, longest);
    if (*wanted.expires_after < wanted.after) {
      config.problem("expiresAfter", "would expire before it is due; `after` is longer");
    }
  }
  if (config.has("flow")) wanted.flow = config.flow_name("flow");
  // A Flow may get a text, too, as its input; one of both says what the user is told.
  wanted.text =
      config.has("flow") ? config.optional_template("text") : config.text_template("text");
  wanted.data = config.json_template("data");
  return std::make_unique<const FollowUpNode>(std::move(wanted));
}

constexpr NodeField follow_up_fields[]{
    {"after", "duration",
     "The silence that it waits for, from this input on; 1s to 366d. Required."},
    {"text", "template", "What is said then. Required without `flow`, whose `input.text` it is."},
    {"flow", "name", "The Flow that runs then, with `input.source` = `followUp`."},
    {"data", "JSON template", "What goes out beside the text, or the Flow's `input.data`."},
    {"expiresAfter", "duration", "From when on it comes too late, and is dropped."}};

}  // namespace

constinit const NodeType follow_up_node{
    .name = "followUp",
    .summary =
        "Follows the user up, unless he says something before; in place of the project's journey.",
    .shorthand = "",
    .fields = follow_up_fields,
    .example =
        "- followUp:\n"
        "    after: 20m\n"
        "    text: \"Are you still there, {{profile.name}}?\"\n"
        "    expiresAfter: 4h\n",
    .create = create_follow_up};

}  // namespace conversed::flows
