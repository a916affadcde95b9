#include "flows/node.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

// A Node overrides the function of each thing that its `awaits` names. The Turn asks `awaits`
// before it calls, so only a defect of a Node type reaches these defaults.
Result<Step> Node::on_input(Turn& turn) const {
  return turn.failure(model::Errc::internal, "takes no input");
}

Result<Step> Node::on_call_result(Turn& turn, const model::CallResult&) const {
  return turn.failure(model::Errc::internal, "takes no result of a call");
}

Result<Step> Node::on_timer(Turn& turn) const {
  return turn.failure(model::Errc::internal, "takes no timer");
}

Result<Step> Node::on_time_out(Turn& turn) const {
  return turn.failure(model::Errc::internal, "takes no time-out");
}

}  // namespace conversed::flows
