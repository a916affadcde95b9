// Effects without a Turn of the Flow: an expired session, a failed Turn, a notify, a follow-up.
#include <algorithm>
#include <utility>

#include "flows/turn/standing.h"
#include "flows/turn/turn_runner.h"

namespace conversed::flows {

using model::EventType;

namespace {

model::Output output_of(model::Session& session, std::string id, std::string input_id,
                        std::string trace_id, std::string tracestate, model::Timestamp now) {
  model::Output output;
  output.id = std::move(id);
  output.seq = ++session.last_output_seq;
  output.input_id = std::move(input_id);
  output.trace_id = std::move(trace_id);
  output.tracestate = std::move(tracestate);
  output.created_at = now;
  return output;
}

// The Effects of an event whose text is said without a Flow.
model::Effects said(model::Session session, const model::Event& event, model::Timestamp now) {
  auto output =
      output_of(session, event.id + "-1", event.id, event.trace_id, event.tracestate, now);
  output.text = event.text.value_or("");
  output.data = event.data;
  model::Effects effects;
  effects.outputs.push_back(std::move(output));
  effects.session = std::move(session);
  return effects;
}

}  // namespace

void reset_session(model::Session& session, model::Timestamp now) {
  session.started_at = now;
  session.context = nlohmann::json::object();
  session.flow_state = state_after_reset(session.flow_state);
  session.execution.reset();
}

void note_input(model::Session& session, const model::Event& event) {
  session.key = event.session;
  session.last_activity_at = std::max(session.last_activity_at, event.accepted_at);
}

bool starts_afresh(const model::Session& session, const model::Endpoint& endpoint,
                   model::Timestamp accepted_at) {
  if (session.last_activity_at == model::Timestamp{}) return true;
  const auto expired_since = [&](model::Timestamp last) {
    return endpoint.session_expiry.count() > 0 && accepted_at - last > endpoint.session_expiry;
  };
  if (!expired_since(session.last_activity_at)) return false;
  if (keeps_events(session.flow_state)) return false;  // of a `collect` whose Turn has failed
  const auto until = waits_for_event_until(session.flow_state);
  return !until || expired_since(*until);
}

std::optional<model::Execution> end_failed(model::Session& session, const model::Endpoint& endpoint,
                                           const model::Event& event) {
  auto execution = std::exchange(session.execution, std::nullopt);
  if (!is_input(event.type)) return execution;
  if (!model::comes_of_silence(event.type) && starts_afresh(session, endpoint, event.accepted_at)) {
    reset_session(session, event.accepted_at);
  }
  if (event.type == EventType::time_out && event.claim) {
    forget_time_out(session.flow_state, event.claim->id);
  }
  note_input(session, event);
  return std::nullopt;
}

model::Effects failure_effects(model::Session session, const model::Endpoint& endpoint,
                               const model::Event& event, model::Timestamp now) {
  model::Effects effects;
  effects.execution_ended = true;
  const auto failed = end_failed(session, endpoint, event);
  if (!endpoint.error_text.empty()) {
    const std::string& input_id = failed ? failed->input_id : event.id;
    auto output = output_of(session, input_id + "-error", input_id,
                            failed ? failed->trace_id : event.trace_id,
                            failed ? failed->tracestate : event.tracestate, now);
    output.text = endpoint.error_text;
    effects.outputs.push_back(std::move(output));
  }
  effects.session = std::move(session);
  return effects;
}

model::Effects notify_effects(model::Session session, const model::Event& event,
                              model::Timestamp now) {
  if (session.started_at == model::Timestamp{}) session.started_at = event.accepted_at;
  return said(std::move(session), event, now);
}

model::Effects follow_up_effects(model::Session session, const model::Event& event,
                                 model::Timestamp now) {
  note_input(session, event);
  auto effects = said(std::move(session), event, now);
  effects.execution_ended = true;
  return effects;
}

}  // namespace conversed::flows
