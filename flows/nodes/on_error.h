#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "flows/node_types.h"

namespace conversed::flows {

// What becomes of a Node that asks somebody and gets no answer.
class OnError {
 public:
  // Reads `onError`.
  explicit OnError(NodeConfig& config);

  // The way into the branch, in which `input.error` is `{code, message, status}`; without one the
  // execution fails. `status` is 0 where there was no answer.
  [[nodiscard]] Result<Step> failed(Turn& turn, std::string_view code, const std::string& message,
                                    int status = 0) const;
  [[nodiscard]] Result<Step> failed(Turn& turn, const model::CallResult& result) const {
    return failed(turn, result.error_code, result.error_message, result.status);
  }

  static constexpr NodeField field{
      "onError", "nodes",
      "Run if the call fails, with `input.error` = `{code, message, status}`; then the Flow goes "
      "on. Without it a failed call fails the execution."};

 private:
  std::optional<NodeIndex> branch_;
};

}  // namespace conversed::flows
