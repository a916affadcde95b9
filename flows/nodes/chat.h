#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flows/node_types.h"
#include "flows/nodes/on_error.h"
#include "flows/turn/turn.h"

// The chat completions of OpenAI's protocol, which most servers of language models speak. Shared by
// llmPrompt and aiAgent. The words of a model are data: cut to a size, and never evaluated. Kept
// by: AiAgentNode.HostileAnswersAreBounded.
namespace conversed::flows {

inline constexpr std::size_t max_answer_bytes = 16 * 1024;  // the rest is cut off

// How a model is asked.
struct Chat {
  std::string connection;  // its name
  std::string model;       // empty: the Connection's
  int max_tokens = 0;      // of one answer
  std::chrono::milliseconds timeout{};
  int retries = 0;
  nlohmann::json options;  // an object; members of the request, a null removes one
  OnError on_error;

  // Reads all of these; `onError` comes last, behind all other branches.
  static Chat read(NodeConfig& config, int max_tokens);

  // Asks with `body`, which has the `messages`.
  [[nodiscard]] Result<Step> ask(Turn& turn, nlohmann::json body) const;
};

// What to do with an answer: say it, store it, or both.
struct Sink {
  std::optional<expression::Path> store_in;
  bool say = true;

  static Sink read(NodeConfig& config);
  // `value` is what is stored, `text` what is said.
  [[nodiscard]] Result<void> take(Turn& turn, const std::string& text, nlohmann::json value) const;
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text, or what the model takes for it
};

struct ChatAnswer {
  std::string text;  // at most `max_answer_bytes`; may be empty
  std::vector<ToolCall> tool_calls;
};

// The model's answer; nothing if it has another shape. Excess bytes and tool calls are left out.
[[nodiscard]] std::optional<ChatAnswer> read_answer(const nlohmann::json& body);

// `{"role": role, "content": text}`
[[nodiscard]] nlohmann::json message_of(std::string_view role, std::string text);

inline constexpr NodeField chat_fields[]{
    {"connection", "name",
     "A Connection of type `llm`, whose fields are `baseUrl` (such as "
     "`https://llm.example.com/v1`), `model` and `apiKey`. Required."},
    {"model", "text", "The model's name. Default: the Connection's."},
    {"maxTokens", "number", "The most tokens of one answer, 1 to 100000. Default 1000."},
    {"options", "mapping",
     "Further members of the request, such as `{temperature: 0.2}`. Null removes one."},
    {"storeIn", "path", "Where the answer is stored."},
    {"say", "true or false", "Say the answer to the user. Default: true without `storeIn`."},
    {"timeout", "duration", "For one attempt, at most 5m. Default 60s."},
    {"retries", "number",
     "Further attempts after time-outs, 429 and 5xx, 0 to 10. They wait as `Retry-After` says. "
     "Default 2."},
    OnError::field};

// A Node's own fields and these.
template <std::size_t N>
consteval auto with_chat_fields(const NodeField (&own)[N]) {
  return [&]<std::size_t... I, std::size_t... J>(std::index_sequence<I...>,
                                                 std::index_sequence<J...>) {
    return std::array{own[I]..., chat_fields[J]...};
  }
  (std::make_index_sequence<N>(), std::make_index_sequence<std::size(chat_fields)>());
}

}  // namespace conversed::flows
