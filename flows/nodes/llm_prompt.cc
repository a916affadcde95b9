#include "flows/nodes/chat.h"
#include "store/model/json.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr std::size_t max_value_depth = 16;  // in an answer in JSON

// Models often enclose JSON in a Markdown fence.
std::string_view without_fence(std::string_view text) {
  constexpr std::string_view fence = "```";
  constexpr std::string_view blanks = " \t\r\n";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return text;
  text = text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
  const auto line_end = text.find('\n');
  if (!text.starts_with(fence) || !text.ends_with(fence) || line_end == std::string_view::npos ||
      line_end + fence.size() >= text.size()) {
    return text;
  }
  return text.substr(line_end + 1, text.size() - fence.size() - line_end - 1);
}

struct LlmPromptNode final : ChatNode {
  expression::Template prompt;
  std::optional<expression::Template> instructions;
  bool wants_json = false;

  Result<Step> run(Turn& turn) const override {
    json body = {{"messages", json::array()}};
    json& messages = body["messages"];
    if (instructions) {
      messages.push_back(message_of("system", instructions->render(turn.scope())));
    }
    messages.push_back(message_of("user", prompt.render(turn.scope())));
    if (wants_json) body["response_format"] = {{"type", "json_object"}};
    return ask_model(turn, std::move(body));
  }

  Result<Step> on_call_result(Turn& turn, const model::CallResult& result) const override {
    if (!result.error_code.empty()) return failed(turn, result, connection);
    auto answer = read_answer(result.body);
    if (!answer || answer->text.empty()) {
      return failed(turn, "invalid_answer", "the model gave no answer", result.status);
    }
    json value = answer->text;
    if (wants_json) {
      auto parsed = model::parse_json(without_fence(answer->text), max_value_depth);
      if (!parsed) {
        return failed(turn, "invalid_answer", "the model's answer is not JSON", result.status);
      }
      value = std::move(*parsed);
    }
    return step_after(take_answer(turn, answer->text, std::move(value)));
  }
};

constexpr auto llm_prompt_fields =
    with_chat_fields({required<&LlmPromptNode::prompt>("prompt"),
                      optional<&LlmPromptNode::instructions>("instructions"),
                      optional<&LlmPromptNode::wants_json>("json").by_default(false)});

}  // namespace

constinit const NodeType llm_prompt_node{
    .name = "llmPrompt", .fields = llm_prompt_fields, .create = create<LlmPromptNode>};

}  // namespace conversed::flows
