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

#include "flows/nodes/calls.h"

// The chat completions of OpenAI's protocol, which most servers of language models speak. Shared by
// llmPrompt and aiAgent. The words of a model are data: cut to a size, and never evaluated. Kept
// by: AiAgentNode.HostileAnswersAreBounded.
namespace conversed::flows {

inline constexpr std::size_t max_answer_bytes = 16 * 1024;  // the rest is cut off

// A Node that asks a language model. What it does with the answer: say it, store it, or both.
struct ChatNode : CallNode {
  std::string connection;  // its name
  std::string model;       // empty: the Connection's
  int max_tokens = 0;      // of one answer
  // An object; members of the request, a null removes one.
  nlohmann::json options = nlohmann::json::object();
  std::optional<expression::Path> store_in;
  std::optional<bool> say;  // none: if the answer is not stored
  std::chrono::milliseconds timeout{};
  int retries = 0;

  static void read_options(NodeConfig& config, const View& at, nlohmann::json& into);

 protected:
  // Asks with `body`, which has the `messages`.
  [[nodiscard]] Result<Step> ask_model(Turn& turn, nlohmann::json body) const;
  // `value` is what is stored, `text` what is said.
  [[nodiscard]] Result<void> take_answer(Turn& turn, const std::string& text,
                                         nlohmann::json value) const;
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
    required<&ChatNode::connection, &NodeConfig::model_connection>("connection"),
    optional<&ChatNode::model>("model"),
    optional<&ChatNode::max_tokens>("maxTokens").within(1, 100'000).by_default(1000),
    optional<&ChatNode::options, &ChatNode::read_options>("options"),
    optional<&ChatNode::store_in>("storeIn"),
    optional<&ChatNode::say>("say"),
    optional<&ChatNode::timeout>("timeout")
        .within(std::chrono::milliseconds(1), std::chrono::minutes(5))
        .by_default(std::chrono::minutes(1)),
    optional<&ChatNode::retries>("retries").within(0, 10).by_default(2),
    on_error_field};

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
