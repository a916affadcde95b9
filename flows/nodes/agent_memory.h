#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "flows/nodes/chat.h"

namespace conversed::flows {

// What an aiAgent has said and heard in its session: whole exchanges, each from a message of the
// user to the last answer to it, and the one that goes on. It is kept in the session's Flow state
// and so is bounded in messages and bytes. One thread.
class AgentMemory {
 public:
  static constexpr std::size_t kept_bytes = 32 * 1024;       // of exchanges that are over
  static constexpr std::size_t exchange_bytes = 128 * 1024;  // of the one that goes on

  // From what `save` gave; null is a new one. Nothing: it has another shape.
  [[nodiscard]] static std::optional<AgentMemory> load(const nlohmann::json& stored);
  [[nodiscard]] nlohmann::json save() const;

  // Begins an exchange. Of those before at most `messages` messages are kept, the newest; tools
  // that came to no end in the last one are said to have been interrupted.
  void begin(std::string text, std::size_t messages);
  // The exchange has no answer: it is forgotten.
  void give_up();
  // The last answer of the exchange; at most `messages` messages are kept.
  void end(std::string text, std::size_t messages);

  // The model asks for tools, which are `open` until each is answered, the first one first.
  void add_calls(const ChatAnswer& answer);
  [[nodiscard]] const std::vector<ToolCall>& open() const { return open_; }
  void answer_first(std::string_view content);

  // All messages in the protocol's form, without the instructions.
  [[nodiscard]] const std::vector<nlohmann::json>& messages() const { return messages_; }
  [[nodiscard]] bool too_large() const;

  // Of the exchange that goes on.
  std::int64_t turns = 0;   // times that the model was asked
  std::int64_t tokens = 0;  // as it counted them

 private:
  void trim(std::size_t messages);

  std::vector<nlohmann::json> messages_;
  std::size_t begin_ = 0;  // of the exchange that goes on, or of the last one
  std::vector<ToolCall> open_;
};

}  // namespace conversed::flows
