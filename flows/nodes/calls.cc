#include "flows/nodes/calls.h"

namespace conversed::flows {

static constexpr std::string_view deleted = "connection_deleted";

Result<Step> CallNode::failed(Turn& turn, std::string_view code, const std::string& message,
                              int status) const {
  if (!on_error) {
    return turn.failure(model::Errc::bad_upstream, std::string(code) + ": " + message);
  }
  turn.set_input_error(code, message, status);
  return Jump{*on_error};
}

Result<Step> CallNode::failed(Turn& turn, const model::CallResult& result,
                              std::string_view connection) const {
  // The Connection was deleted after the Turn that asked for the call.
  if (result.error_code == deleted && !connection.empty()) {
    return connection_deleted(turn, connection);
  }
  return failed(turn, result.error_code, result.error_message, result.status);
}

Result<Step> CallNode::connection_deleted(Turn& turn, std::string_view connection) const {
  return failed(turn, deleted,
                "the Connection '" + std::string(connection) + "' does not exist any more");
}

}  // namespace conversed::flows
