#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

// The `onError` branch of a Node that calls out.
class OnError {
 public:
  // Reads `onError`.
  explicit OnError(NodeConfig& config);

  // Enters the branch with `input.error` = `{code, message, status}`. Without a branch the
  // execution fails. `status` is 0 if there was no answer.
  [[nodiscard]] Result<Step> failed(Turn& turn, std::string_view code, const std::string& message,
                                    int status = 0) const;
  // `connection` is the name of the call's Connection, which `result` does not have; "" for none.
  [[nodiscard]] Result<Step> failed(Turn& turn, const model::CallResult& result,
                                    std::string_view connection = {}) const;
  [[nodiscard]] Result<Step> connection_deleted(Turn& turn, std::string_view connection) const;

  static constexpr NodeField field{
      "onError", "nodes",
      "Run if the call fails, with `input.error` = `{code, message, status}`. Then the Flow "
      "continues. Without it a failed call fails the execution."};

 private:
  std::optional<NodeIndex> branch_;
};

}  // namespace conversed::flows
