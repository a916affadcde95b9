// Asks a language model once, without memory. The Turn ends with the call; the answer comes back as
// an event.
#include "flows/nodes/chat.h"
#include "store/model/json.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr int default_prompt_tokens = 1000;
constexpr std::size_t max_value_depth = 16;  // of an answer in JSON

// Models like to wrap JSON in a fence of Markdown, whatever they are told.
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
    if (auto done = prompt_.sink.take(turn, answer->text, std::move(value)); !done) {
      return model::fail(done.error());
    }
    return Continue{};
  }

  Awaits awaits() const override { return Awaits::call_result; }

 private:
  const Prompt prompt_;
};

std::unique_ptr<const Node> create_llm_prompt(NodeConfig& config) {
  return std::make_unique<const LlmPromptNode>(
      Prompt{.prompt = config.text_template("prompt"),
             .instructions = config.optional_template("instructions"),
             .wants_json = config.flag("json", false),
             .sink = Sink::read(config),
             .chat = Chat::read(config, default_prompt_tokens)});
}

constexpr auto llm_prompt_fields = with_chat_fields(
    {{"prompt", "template", "What the model is asked. Required."},
     {"instructions", "template", "What it is told to be and to heed."},
     {"json", "true or false",
      "Ask for JSON, and store its value; what is none is an error. Default false."}});

}  // namespace

constinit const NodeType llm_prompt_node{
    .name = "llmPrompt",
    .summary =
        "Asks a language model and goes on with its answer, of which the first 16 KiB count. "
        "What it says is data: nothing in it is evaluated.",
    .shorthand = "",
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
