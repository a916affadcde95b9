// What becomes of the time-outs of questions: their timers wait in the store as those of sleeping
// executions do, but hold nothing up.
#include "flows/turn/time_outs.h"

#include <algorithm>
#include <string>

#include "daemon/turns/turn_batch_builder.h"
#include "store/conversation/calls.h"

namespace conversed::daemon {

using model::Event;
using model::EventType;
using model::Result;

// Whether the session still waits for the call or timer that the event is of.
bool TurnBatchBuilder::waits_for(const Event& event) const {
  const std::string& id = event.claim->id;
  if (event.type == EventType::time_out) return flows::waits_for_time_out(session_, id);
  return session_.execution && session_.execution->pending_call_id == id;
}

// Whether its claim is there. Operators take the timers of questions back without touching the
// session, so that its row has the last word.
Result<bool> TurnBatchBuilder::holds_timer(const Event& event) const {
  if (!waits_for(event)) return false;
  if (event.type != EventType::time_out) return true;
  return context_.store.calls().waits(event.claim->id);
}

// Whether the event begins a conversation anew: never what comes of a silence.
bool TurnBatchBuilder::begins_afresh(const Event& event, const model::Endpoint& endpoint) const {
  return event.type != EventType::time_out &&
         flows::starts_afresh(session_, endpoint, event.accepted_at);
}

// The Flow of a follow-up that an input goes on with; empty: the Endpoint's goes on, or starts.
std::string TurnBatchBuilder::waiting_follow_up_flow(const Event& event,
                                                     const model::Endpoint& endpoint) const {
  if (begins_afresh(event, endpoint)) return {};
  const bool behind = event.type == EventType::time_out && event.claim &&
                      flows::is_time_out_behind(session_, event.claim->id);
  return behind ? std::string() : flows::follow_up_flow_of(session_);
}

// The timers of questions that wait no more go with whatever ended that: an answer, a session that
// starts afresh, another Flow.
void TurnBatchBuilder::settle_time_outs() {
  const auto left = flows::time_outs_of(session_);
  const auto is_over = [&](const std::string& id) {
    return std::ranges::find(left, id) == left.end();
  };
  for (const auto& id : time_outs_) {
    if (is_over(id)) batch_.commit.calls.cancelled.push_back(id);
  }
  // Begun in this batch, nobody knows of it yet.
  std::erase_if(batch_.commit.calls.started,
                [&](const auto& call) { return call.is_time_out && is_over(call.id); });
}

}  // namespace conversed::daemon
