#include "flows/nodes/chat.h"
#include "store/model/json.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr int default_prompt_tokens = 1000;
constexpr std::size_t max_value_depth = 16;  // of an answer in JSON

// Models often wrap JSON in a fence of Markdown.
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

struct Prompt {
  expression::Template prompt;
  std::optional<expression::Template> instructions;
  bool wants_json = false;
  Sink sink;
  Chat chat;
};

class LlmPromptNode final : public Node {
 public:
  explicit LlmPromptNode(Prompt prompt) : prompt_(std::move(prompt)) {}

  Result<Step> run(Turn& turn) const override {
    json body = {{"messages", json::array()}};
    json& messages = body["messages"];
    if (prompt_.instructions) {
      messages.push_back(message_of("system", prompt_.instructions->render(turn.scope())));
    }
    messages.push_back(message_of("user", prompt_.prompt.render(turn.scope())));
    if (prompt_.wants_json) body["response_format"] = {{"type", "json_object"}};
    return prompt_.chat.ask(turn, std::move(body));
  }

  Result<Step> on_call_result(Turn& turn, const model::CallResult& result) const override {
    const OnError& on_error = prompt_.chat.on_error;
    if (!result.error_code.empty()) return on_error.failed(turn, result, prompt_.chat.connection);
    auto answer = read_answer(result.body);
    if (!answer || answer->text.empty()) {
      return on_error.failed(turn, "invalid_answer", "the model gave no answer", result.status);
    }
    json value = answer->text;
    if (prompt_.wants_json) {
      auto parsed = model::parse_json(without_fence(answer->text), max_value_depth);
      if (!parsed) {
        return on_error.failed(turn, "invalid_answer", "the model's answer is no JSON",
                               result.status);
      }
      value = std::move(*parsed);
    }
    return step_after(prompt_.sink.take(turn, answer->text, std::move(value)));
  }

  Awaits awaits() const override { return Awaits::call_result; }

 private:
  const Prompt prompt_;
};

NodePtr create_llm_prompt(NodeConfig& config) {
  return std::make_unique<const LlmPromptNode>(
      Prompt{.prompt = config.text_template("prompt"),
             .instructions = config.optional_template("instructions"),
             .wants_json = config.flag("json", false),
             .sink = Sink::read(config),
             .chat = Chat::read(config, default_prompt_tokens)});
}

constexpr auto llm_prompt_fields = with_chat_fields(
    {{"prompt", "template", "The question to the model. Required."},
     {"instructions", "template", "The system message: its role and its rules."},
     {"json", "true or false",
      "Ask for JSON and store its value. Any other answer is an error. Default false."}});

}  // namespace

constinit const NodeType llm_prompt_node{
    .name = "llmPrompt",
    .summary =
        "Asks a language model once and continues with its answer, cut to 16 KiB. The answer is "
        "data: nothing in it is evaluated.",
    .fields = llm_prompt_fields,
    .example =
        "- llmPrompt:\n"
        "    connection: model\n"
        "    instructions: \"Answer with one word: positive, negative or neutral.\"\n"
        "    prompt: \"{{input.text}}\"\n"
        "    maxTokens: 5\n"
        "    storeIn: context.mood\n"
        "    onError: [{addToContext: {mood: neutral}}]\n",
    .create = create_llm_prompt};

}  // namespace conversed::flows
