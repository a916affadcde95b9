#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "flows/nodes/chat.h"

namespace conversed::flows {

// The messages of an aiAgent in its session: whole exchanges, each from a message of the user to
// its last answer, and the current one. It is stored in the session's Flow state and bounded in
// messages and bytes. Kept by: AgentMemory.KeepsWholeExchangesOnly, AiAgentNode.MemoryIsBounded.
// One thread.
class AgentMemory {
 public:
  static constexpr std::size_t kept_bytes = 32 * 1024;       // of earlier exchanges
  static constexpr std::size_t exchange_bytes = 128 * 1024;  // of the current one

  // From the result of `save`; null is a new one. Nothing if it has another shape.
  [[nodiscard]] static std::optional<AgentMemory> load(const nlohmann::json& stored);
  [[nodiscard]] nlohmann::json save() const;

  // Begins an exchange. The newest `messages` messages of earlier ones are kept. Tools of the last
  // exchange that have no result are answered as interrupted.
  void begin(std::string text, std::size_t messages);
  // Forgets the current exchange.
  void give_up();
  // The last answer of the exchange; at most `messages` messages are kept.
  void end(std::string text, std::size_t messages);

  // The model asks for tools. They are `open` until each is answered, in order.
  void add_calls(const ChatAnswer& answer);
  [[nodiscard]] const std::vector<ToolCall>& open() const { return open_; }
  void answer_first(std::string_view content);

  // All messages in the protocol's form, without the instructions.
  [[nodiscard]] const std::vector<nlohmann::json>& messages() const { return messages_; }
  [[nodiscard]] bool too_large() const;

  // Of the current exchange.
  std::int64_t turns = 0;   // requests to the model
  std::int64_t tokens = 0;  // as it counted them

 private:
  void trim(std::size_t messages);

  std::vector<nlohmann::json> messages_;
  std::size_t begin_ = 0;  // of the current exchange, or of the last one
  std::vector<ToolCall> open_;
};

}  // namespace conversed::flows
