#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "flows/nodes/chat.h"

namespace conversed::flows {

// The messages of an aiAgent in its session: earlier exchanges, each from a message of the user to
// its last answer, and the current one. It is stored in the session's Flow state and bounded in
// messages and bytes. One thread.
// Kept by: AgentMemory.KeepsWholeExchangesOnly, AiAgentNode.MemoryIsBounded.
class AgentMemory {
 public:
  static constexpr std::size_t kept_bytes = 32 * 1024;       // of earlier exchanges
  static constexpr std::size_t exchange_bytes = 128 * 1024;  // of the current one

  // Loads the result of `save`. Null makes an empty memory. Nothing if the value has another shape.
  [[nodiscard]] static std::optional<AgentMemory> load(const nlohmann::json& stored);
  [[nodiscard]] nlohmann::json save() const;

  // Begins an exchange. Keeps the newest `messages` messages of earlier ones. Tools of the last
  // exchange without a result are answered as interrupted.
  void begin(std::string text, std::size_t messages);
  // Forgets the current exchange.
  void give_up();
  // Ends the exchange with its last answer. Keeps at most `messages` messages.
  void end(std::string text, std::size_t messages);

  // The model asks for tools. They are `open` until they are answered, in order.
  void add_calls(const ChatAnswer& answer);
  [[nodiscard]] const std::vector<ToolCall>& open() const { return open_; }
  void answer_first(std::string_view content);

  // All messages in the form of the protocol, without the instructions.
  [[nodiscard]] const std::vector<nlohmann::json>& messages() const { return messages_; }
  [[nodiscard]] bool too_large() const;

  // Counts of the current exchange.
  std::int64_t turns = 0;   // requests to the model
  std::int64_t tokens = 0;  // as the model counted them

 private:
  void trim(std::size_t messages);

  std::vector<nlohmann::json> messages_;
  std::size_t begin_ = 0;  // the current exchange's first message, or the last one's
  std::vector<ToolCall> open_;
};

}  // namespace conversed::flows
