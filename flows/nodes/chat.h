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

// The chat completions of OpenAI's protocol, which most servers of language models support.
// llmPrompt and aiAgent share this file. A model's words are data: cut to a size, and never
// evaluated.
// Kept by: AiAgentNode.HostileAnswersAreBounded.
namespace conversed::flows {

inline constexpr std::size_t max_answer_bytes = 16 * 1024;  // more is cut off

// A Node that asks a language model. It says the answer, stores it, or both.
struct ChatNode : CallNode {
  std::string connection;  // its name
  std::string model;       // empty: the Connection's
  int max_tokens = 0;      // of one answer
  // An object with members of the request. A null removes a member.
  nlohmann::json options = nlohmann::json::object();
  std::optional<expression::Path> store_in;
  std::optional<bool> say;  // empty: true if the answer is not stored
  std::chrono::milliseconds timeout{};
  int retries = 0;

  static void read_options(NodeConfig& config, const View& at, nlohmann::json& into);

 protected:
  // Sends a request with `body`, which contains the `messages`.
  [[nodiscard]] Result<Step> ask_model(Turn& turn, nlohmann::json body) const;
  // Stores `value` and says `text`.
  [[nodiscard]] Result<void> take_answer(Turn& turn, const std::string& text,
                                         nlohmann::json value) const;
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text, or text that the model takes for JSON
};

struct ChatAnswer {
  std::string text;  // at most `max_answer_bytes`; may be empty
  std::vector<ToolCall> tool_calls;
};

// The model's answer. Nothing if it has another shape. Omits excess bytes and tool calls.
[[nodiscard]] std::optional<ChatAnswer> read_answer(const nlohmann::json& body);

// `{"role": role, "content": text}`
[[nodiscard]] nlohmann::json message_of(std::string_view role, std::string text);

inline constexpr NodeField chat_fields[]{
    required<&ChatNode::connection, &NodeConfig::model_connection>("connection"),
    optional<&ChatNode::model>("model"),
    optional<&ChatNode::max_tokens>("maxTokens").within(1, 100'000).by_default(1000),
    optional<&ChatNode::options, &ChatNode::read_options>("options").as(Form::any_mapping),
    optional<&ChatNode::store_in>("storeIn"),
    optional<&ChatNode::say>("say"),
    optional<&ChatNode::timeout>("timeout")
        .within(std::chrono::milliseconds(1), std::chrono::minutes(5))
        .by_default(std::chrono::minutes(1)),
    optional<&ChatNode::retries>("retries").within(0, 10).by_default(2),
    on_error_field};

// A Node's own fields and the fields of all ChatNodes.
template <std::size_t N>
consteval auto with_chat_fields(const NodeField (&own)[N]) {
  return [&]<std::size_t... I, std::size_t... J>(std::index_sequence<I...>,
                                                 std::index_sequence<J...>) {
    return std::array{own[I]..., chat_fields[J]...};
  }
  (std::make_index_sequence<N>(), std::make_index_sequence<std::size(chat_fields)>());
}

}  // namespace conversed::flows
