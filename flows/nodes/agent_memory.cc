#include "flows/nodes/agent_memory.h"

#include <algorithm>
#include <utility>

#include "flows/json_members.h"
#include "store/text/utf8.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr const char* interrupted = "The tool was interrupted; there is no result.";

bool is_from_user(const json& message) {
  return message["role"] == "user";
}

std::optional<ToolCall> call_from(const json& value) {
  const std::string* id = find_text(value, "id");
  const std::string* name = find_text(value, "name");
  const std::string* arguments = find_text(value, "arguments");
  if (id == nullptr || name == nullptr || arguments == nullptr) return std::nullopt;
  return ToolCall{*id, *name, *arguments};
}

std::size_t size_of(const json& message) {
  return message.dump().size();
}

}  // namespace

std::optional<AgentMemory> AgentMemory::load(const json& stored) {
  AgentMemory memory;
  if (stored.is_null()) return memory;
  const json* messages = find_member(stored, "messages");
  const json* open = find_member(stored, "open");
  const auto begin = find_count(stored, "begin");
  const auto turns = find_count(stored, "turns");
  const auto tokens = find_count(stored, "tokens");
  const auto is_message = [](const json& item) { return find_text(item, "role") != nullptr; };
  if (messages == nullptr || !messages->is_array() || open == nullptr || !open->is_array() ||
      !begin || !turns || !tokens || !std::ranges::all_of(*messages, is_message)) {
    return std::nullopt;
  }
  memory.messages_.assign(messages->begin(), messages->end());
  memory.begin_ = static_cast<std::size_t>(*begin);
  if (memory.begin_ > memory.messages_.size()) return std::nullopt;
  memory.turns = *turns;
  memory.tokens = *tokens;
  for (const auto& item : *open) {
    auto call = call_from(item);
    if (!call) return std::nullopt;
    memory.open_.push_back(std::move(*call));
  }
  return memory;
}

json AgentMemory::save() const {
  json open = json::array();
  for (const auto& call : open_) {
    open.push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  }
  return {{"messages", messages_},
          {"begin", begin_},
          {"turns", turns},
          {"tokens", tokens},
          {"open", std::move(open)}};
}

void AgentMemory::begin(std::string text, std::size_t messages) {
  while (!open_.empty()) answer_first(interrupted);
  trim(messages);
  begin_ = messages_.size();
  turns = 0;
  tokens = 0;
  messages_.push_back(message_of("user", std::move(text)));
}

void AgentMemory::give_up() {
  open_.clear();
  messages_.resize(begin_);
}

void AgentMemory::end(std::string text, std::size_t messages) {
  messages_.push_back(message_of("assistant", std::move(text)));
  trim(messages);
  begin_ = messages_.size();
}

void AgentMemory::add_calls(const ChatAnswer& answer) {
  json calls = json::array();
  for (const auto& call : answer.tool_calls) {
    calls.push_back({{"id", call.id},
                     {"type", "function"},
                     {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  json message = message_of("assistant", answer.text);
  if (answer.text.empty()) message["content"] = nullptr;
  message["tool_calls"] = std::move(calls);
  messages_.push_back(std::move(message));
  open_ = answer.tool_calls;
}

void AgentMemory::answer_first(std::string_view content) {
  json message = message_of("tool", std::string(text::cut(content, max_answer_bytes)));
  message["tool_call_id"] = open_.front().id;
  messages_.push_back(std::move(message));
  open_.erase(open_.begin());
}

bool AgentMemory::too_large() const {
  std::size_t bytes = 0;
  for (std::size_t i = begin_; i < messages_.size(); ++i) bytes += size_of(messages_[i]);
  return bytes > exchange_bytes;
}

// Removes whole exchanges, the oldest first. Servers refuse a tool's answer without its call.
void AgentMemory::trim(std::size_t messages) {
  std::size_t bytes = 0;
  std::size_t kept = messages_.size();
  for (std::size_t i = messages_.size(); i-- > 0 && messages_.size() - i <= messages;) {
    bytes += size_of(messages_[i]);
    if (bytes > kept_bytes) break;
    if (is_from_user(messages_[i])) kept = i;
  }
  messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(kept));
  begin_ = messages_.size();
}

}  // namespace conversed::flows
