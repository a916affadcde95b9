#include "api/reasons/session_waits.h"

#include <algorithm>

#include "flows/turn/standing.h"
#include "store/commit/call_target.h"

namespace conversed::api {

using model::Reason;
using model::Timestamp;
using model::Wait;

std::string name_of(const model::SessionKey& key) {
  return "the session " + key.session_id + " of the user " + key.user_id;
}

std::string place_of(const model::Session& session) {
  const auto places = flows::standings(session.flow_state, session.execution);
  if (places.empty()) return "The Flow";
  return "The Flow " + places.back().flow + ", at the Node " + places.back().at + ",";
}

Wait wait_of_call(const store::Calls::Shown& call, const std::string& place,
                  std::optional<Timestamp> calling_since, Timestamp now,
                  std::chrono::milliseconds offset) {
  const int attempt = call.attempts + 1;
  Wait wait{.reason = Reason::call,
            .subject = place + " calls " + store::words_of_upstream(call.upstream.value_or("")) +
                       ": attempt " + std::to_string(attempt) + " of " +
                       std::to_string(std::max(call.retries + 1, attempt)),
            .since = calling_since};
  if (calling_since) {
    wait.subject += ", without an answer yet";
    if (call.time_limit) wait.expected_at = *calling_since + *call.time_limit;
  } else if (call.try_at && *call.try_at - offset > now) {
    wait.subject += ", after a pause";
    wait.expected_at = *call.try_at - offset;
  }
  wait.subject += '.';
  return wait;
}

Wait wait_of_input(const std::string& timer_id, const std::string& place,
                   std::optional<Timestamp> due) {
  if (flows::is_time_out_of_event(timer_id)) {
    const bool has_events = flows::is_time_out_of_burst(timer_id);
    return {.reason = Reason::event,
            .subject = place + (has_events ? " collects events." : " waits for an event."),
            .expected_at = due};
  }
  return {.reason = Reason::question,
          .subject = place + " waits for the user's answer.",
          .expected_at = due};
}

std::optional<Wait> wait_without_timer(const nlohmann::json& flow_state) {
  const auto places = flows::standings(flow_state, std::nullopt);
  if (places.empty()) return std::nullopt;
  model::Session session;
  session.flow_state = flow_state;
  const auto timers = flows::time_outs_of(session);
  return wait_of_input(timers.empty() ? "" : timers.front(), place_of(session), std::nullopt);
}

}  // namespace conversed::api
