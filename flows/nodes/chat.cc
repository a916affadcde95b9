#include "flows/nodes/chat.h"

#include <algorithm>
#include <array>
#include <utility>

#include "flows/json_members.h"
#include "store/model/json.h"
#include "store/text/utf8.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr std::size_t max_tool_calls = 16;
constexpr std::size_t max_name_bytes = 128;

// Reads a text, or joins the texts in a list of parts.
std::string text_of_content(const json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return text;
  for (const auto& part : content) {
    if (const std::string* found = find_text(part, "text")) text += *found;
  }
  return text;
}

std::string member_text(const json& object, const char* name, std::size_t most) {
  const std::string* found = find_text(object, name);
  return found == nullptr ? std::string() : std::string(text::cut(*found, most));
}

std::vector<ToolCall> tool_calls_of(const json& message) {
  std::vector<ToolCall> calls;
  const json* list = find_member(message, "tool_calls");
  if (list == nullptr || !list->is_array()) return calls;
  for (const auto& item : *list) {
    if (calls.size() >= max_tool_calls) break;
    const json* function = find_member(item, "function");
    if (function == nullptr || !function->is_object()) continue;
    ToolCall call{.id = member_text(item, "id", max_name_bytes),
                  .name = member_text(*function, "name", max_name_bytes),
                  .arguments = member_text(*function, "arguments", max_answer_bytes)};
    if (call.id.empty()) call.id = "call_" + std::to_string(calls.size() + 1);
    // Some servers send the arguments as JSON instead of text. Arguments that were cut are not
    // valid JSON, which the model then learns.
    const json* arguments = find_member(*function, "arguments");
    if (arguments != nullptr && arguments->is_object()) {
      call.arguments = std::string(text::cut(arguments->dump(), max_answer_bytes));
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace

void ChatNode::read_options(NodeConfig&, const View& at, json& into) {
  if (!at.expect_mapping()) return;
  for (const auto& member : at.value().members()) {
    static constexpr std::array<std::string_view, 4> reserved{"messages", "n", "stream", "tools"};
    if (std::ranges::find(reserved, member.name) != reserved.end()) {
      at.member(member).problem("'" + member.name + "' is set by the Node; remove it");
    }
  }
  into = at.value().to_json();
}

Result<Step> ChatNode::ask_model(Turn& turn, json body) const {
  const auto known = turn.assets().connection_ids.find(connection);
  if (known == turn.assets().connection_ids.end()) return connection_deleted(turn, connection);
  body["max_tokens"] = max_tokens;
  if (!model.empty()) body["model"] = model;
  body.merge_patch(options);
  model::HttpCall call;
  call.method = "POST";
  call.url = "/chat/completions";
  call.headers = {{"Content-Type", "application/json"}, {"Accept", "application/json"}};
  call.body = model::json_text(body);
  call.connection_id = known->second;
  call.timeout = timeout;
  call.retries = retries;
  call.to_model = true;
  return CallUpstream{std::move(call)};
}

Result<void> ChatNode::take_answer(Turn& turn, const std::string& text, json value) const {
  if (say.value_or(!store_in)) {
    const std::size_t most = std::min(turn.limits().output_bytes, max_answer_bytes);
    if (auto said = turn.output(std::string(text::cut(text, most)), nullptr); !said) return said;
  }
  return store_in ? turn.assign(*store_in, std::move(value)) : Result<void>();
}

std::optional<ChatAnswer> read_answer(const json& body) {
  const json* choices = find_member(body, "choices");
  if (choices == nullptr || !choices->is_array() || choices->empty()) return std::nullopt;
  const json* message = find_member(choices->front(), "message");
  if (message == nullptr || !message->is_object()) return std::nullopt;
  ChatAnswer answer;
  if (const json* content = find_member(*message, "content")) {
    answer.text = std::string(text::cut(text_of_content(*content), max_answer_bytes));
  }
  answer.tool_calls = tool_calls_of(*message);
  if (answer.text.empty() && answer.tool_calls.empty()) return std::nullopt;
  return answer;
}

json message_of(std::string_view role, std::string text) {
  return {{"role", role}, {"content", std::move(text)}};
}

}  // namespace conversed::flows
