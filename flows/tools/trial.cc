#include "flows/tools/trial.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "flows/turn/standing.h"

namespace conversed::flows::tools {
namespace {

nlohmann::json shown(const model::PendingCall& call) {
  if (call.http) return {{"method", call.http->method}, {"url", call.http->url}};
  return {{"store", call.search->store}, {"query", call.search->text}};
}

model::CallResult refusal() {
  model::CallResult refused;
  refused.error_code = "refused";
  refused.error_message = "a try makes no calls; give their answers";
  return refused;
}

}  // namespace

Trial run_trial(TurnInput input, std::vector<model::CallResult> answers) {
  Trial trial;
  TurnPlace place;
  model::Session session = std::move(input.session);
  model::Profile profile = input.profile;
  model::Event event = input.event;
  for (std::size_t call = 0;; ++call) {
    auto effects = run_turn({.flow = input.flow,
                             .assets = input.assets,
                             .endpoint = input.endpoint,
                             .session = std::move(session),
                             .profile = profile,
                             .event = event,
                             .now = input.now,
                             .limits = input.limits,
                             .flow_version = input.flow_version,
                             .library = input.library,
                             .is_follow_up_flow = input.is_follow_up_flow,
                             .is_overdue = input.is_overdue,
                             .failed_at = &place});
    if (!effects) {
      trial.error = effects.error().message;
      trial.failed_at = place.node;
      return trial;
    }
    std::ranges::move(effects->notes.nodes, std::back_inserter(trial.nodes));
    std::ranges::move(effects->outputs, std::back_inserter(trial.outputs));
    std::ranges::move(effects->log, std::back_inserter(trial.log));
    session = std::move(effects->session);
    if (effects->profile) profile = std::move(*effects->profile);
    if (!effects->call || effects->call->due_at) break;
    trial.calls.push_back(shown(*effects->call));
    event.type = model::EventType::call_result;
    event.claim.reset();
    event.result = call < answers.size() ? std::move(answers[call]) : refusal();
    event.result->call_id = effects->call->id;
  }
  const auto places = standings(session.flow_state, session.execution);
  if (!places.empty()) trial.waits_at = places.back().at;
  return trial;
}

}  // namespace conversed::flows::tools
