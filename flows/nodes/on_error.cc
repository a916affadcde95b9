#include "flows/nodes/on_error.h"

namespace conversed::flows {

OnError::OnError(NodeConfig& config) {
  if (config.has("onError")) branch_ = config.branch("onError");
}

Result<Step> OnError::failed(Turn& turn, std::string_view code, const std::string& message,
                             int status) const {
  if (!branch_) {
    return turn.failure(model::Errc::bad_upstream, std::string(code) + ": " + message);
  }
  turn.set_input_error(code, message, status);
  return Jump{*branch_};
}

}  // namespace conversed::flows
