#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

// A Node that ends the Turn with a call and continues with its result.
struct CallNode : Node {
  std::optional<NodeIndex> on_error;

  Awaits awaits() const final { return Awaits::call_result; }

 protected:
  // Enters the branch `onError` with `input.error` = `{code, message, status}`. Without a branch
  // the execution fails. `status` is 0 if there was no answer.
  [[nodiscard]] Result<Step> failed(Turn& turn, std::string_view code, const std::string& message,
                                    int status = 0) const;
  // `connection` is the name of the call's Connection, because `result` lacks it. "" for none.
  [[nodiscard]] Result<Step> failed(Turn& turn, const model::CallResult& result,
                                    std::string_view connection = {}) const;
  [[nodiscard]] Result<Step> connection_deleted(Turn& turn, std::string_view connection) const;
};

inline constexpr NodeField on_error_field = optional<&CallNode::on_error>("onError");

}  // namespace conversed::flows
