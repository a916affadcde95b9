#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

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
  // `connection` is the name of the call's Connection, "" if it has none: who makes calls knows no
  // names.
  [[nodiscard]] Result<Step> failed(Turn& turn, const model::CallResult& result,
                                    std::string_view connection = {}) const;
  [[nodiscard]] Result<Step> connection_deleted(Turn& turn, std::string_view connection) const;

  static constexpr NodeField field{
      "onError", "nodes",
      "Run if the call fails, with `input.error` = `{code, message, status}`; then the Flow goes "
      "on. Without it a failed call fails the execution."};

 private:
  std::optional<NodeIndex> branch_;
};

}  // namespace conversed::flows
