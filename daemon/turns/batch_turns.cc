#include "daemon/turns/batch_turns.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <utility>

#include "api/live/assets_cache.h"
#include "api/live/project_library.h"
#include "daemon/ops/logging.h"
#include "daemon/turns/batch_claims.h"
#include "daemon/turns/batch_follow_ups.h"
#include "daemon/turns/batch_outputs.h"
#include "daemon/turns/batch_ramps.h"
#include "daemon/turns/turn_clock.h"
#include "flows/turn/standing.h"
#include "flows/turn/turn.h"
#include "store/runtime/fault_points.h"

namespace conversed::daemon {

using model::Event;
using model::EventType;
using model::fail;
using model::Result;

namespace {

using FlowPtr = std::shared_ptr<const api::CompiledFlow>;

// A failure of the store is an error. Any other failure is the event's TurnFailure.
Result<TurnFailure> failed(const model::Error& error, const std::string& reason) {
  if (is_store_failure(error)) return fail(error);
  return TurnFailure(reason);
}

Result<TurnFailure> settled(const Result<void>& result) {
  if (!result) return fail(result.error());
  return TurnFailure();
}

// The reason of a dead letter whose Turn threw `error`: the program has a defect.
std::string caught(const std::exception& error, const flows::TurnPlace& at) {
  log::error(
      "turn threw an exception",
      {{"flow", at.flow}, {"version", at.version}, {"node", at.node}, {"error", error.what()}});
  return "the Turn ended with an internal error";
}

// Sends the notify's text without the Flow, in any state of the session.
Result<void> say(BatchDraft& draft, const Event& event, const EndpointPtr& endpoint) {
  auto effects = flows::notify_effects(std::move(draft.session), event, draft.step.began_at);
  draft.session = std::move(effects.session);
  return settle(draft, {event.id, event.type}, ExecutionState::at_rest, std::move(effects.outputs),
                endpoint);
}

Result<FlowPtr> flow_for(BatchDraft& draft, const Event& event, const model::Endpoint& endpoint,
                         const model::ProjectAssets& assets) {
  auto& cache = draft.context.assets;
  if (model::is_input(event.type)) {
    return cache.flow_for(assets, flows::flow_of_input(draft.session, event, endpoint, assets),
                          draft.input.key);
  }
  const auto& execution = *draft.session.execution;
  return cache.flow(execution.flow_id, execution.flow_version);
}

// Whether the Endpoint's Flow takes the inject, behind the follow-up's Flow that waits.
Result<bool> is_taken_behind(BatchDraft& draft, const Event& event, const model::Endpoint& endpoint,
                             const model::ProjectAssets& assets) {
  const auto& context = draft.context;
  if (event.type != EventType::inject || !flows::waits_for_event_behind(draft.session.flow_state)) {
    return false;
  }
  auto flow = context.assets.flow_for(assets, endpoint.flow_id, draft.input.key);
  if (!flow) return fail(flow.error());
  const api::ProjectLibrary library(context.assets, assets, draft.input.key);
  const flows::TurnPlace place{(*flow)->flow->name(), (*flow)->version.version};
  const TurnClock clock;
  try {
    return flows::takes_inject({.flow = *(*flow)->flow,
                                .assets = assets,
                                .endpoint = endpoint,
                                .session = draft.session,
                                .profile = draft.profile,
                                .event = event,
                                .now = draft.step.began_at,
                                .limits = context.limits,
                                .flow_version = (*flow)->version.version,
                                .library = &library,
                                .is_overdue = [&clock] { return clock.is_overdue(); }});
  } catch (const std::exception& error) {
    return fail(model::Errc::internal, caught(error, place));
  }
}

// A Turn knows the wall clock only. Its waits go by the clock of timers, so that setting the wall
// clock does not change them.
void add_waits(BatchDraft& draft, model::Effects& effects) {
  const auto offset = draft.timer_offset();
  for (auto& follow_up : effects.follow_ups) {
    follow_up.due_at += offset;
    if (follow_up.plan.expires_at) *follow_up.plan.expires_at += offset;
    draft.commit().follow_ups.added.push_back(std::move(follow_up));
  }
  for (auto* wait : {&effects.call, &effects.time_out}) {
    if (!*wait) continue;
    if ((*wait)->due_at) *(*wait)->due_at += offset;
    draft.commit().calls.started.push_back(std::move(**wait));
  }
}

Result<void> apply(BatchDraft& draft, const Speaker& speaker, model::Effects effects,
                   const EndpointPtr& endpoint, const FlowPtr& flow) {
  draft.session = std::move(effects.session);
  if (auto& execution = draft.session.execution) {
    execution->keyed = speaker.keyed;
    execution->answer_until = speaker.answer_until;
    execution->flow_id = flow->version.flow_id;
    execution->flow_version = flow->version.version;
  }
  if (effects.profile) {
    draft.profile.data = std::move(effects.profile->data);
    draft.commit().profile.data = draft.profile.data;
    draft.step.changes_profile = true;
  }
  if (effects.follow_ups_cancelled) cancel_follow_ups(draft);
  add_waits(draft, effects);
  std::ranges::move(effects.log, std::back_inserter(draft.batch.after.log_lines));
  return settle(draft, speaker,
                effects.execution_ended ? ExecutionState::at_rest : ExecutionState::goes_on,
                std::move(effects.outputs), endpoint);
}

// A Flow to run, and the session before the run.
struct Start {
  const FlowPtr& flow;
  model::Session session;
  bool is_follow_up_flow = false;  // see flows::TurnInput, as for the next one
  const std::string* failure = nullptr;
};

Result<TurnFailure> run_turn(BatchDraft& draft, const Event& event, const EndpointPtr& endpoint,
                             const model::ProjectAssets& assets, Start start) {
  const auto& context = draft.context;
  const flows::Flow& flow = *start.flow->flow;
  const model::FlowVersion& version = start.flow->version;
  ++draft.batch.after.turns;
  draft.step.flows_run.clear();
  const bool resumes = !model::is_input(event.type) && start.session.execution;
  const Speaker speaker = resumes ? Speaker::of(*start.session.execution) : Speaker::of(event);
  const api::ProjectLibrary library(context.assets, assets, draft.input.key);
  flows::TurnPlace failed_at{flow.name(), version.version};
  const TurnClock clock;
  const auto begun = context.stopwatch();
  const auto note_end = [&] {
    draft.step.took = context.stopwatch() - begun;
    draft.spent += draft.step.took;
    draft.step.flow = failed_at.flow;
    draft.step.version = failed_at.version;
    draft.step.node = failed_at.node;
  };
  try {
    auto effects =
        flows::run_turn({.flow = flow,
                         .assets = assets,
                         .endpoint = *endpoint,
                         .session = std::move(start.session),
                         .profile = draft.profile,
                         .event = event,
                         .now = draft.step.began_at,
                         .limits = context.limits,
                         .flow_version = version.version,
                         .library = &library,
                         .is_follow_up_flow = start.is_follow_up_flow,
                         .failure = start.failure,
                         .is_overdue = [&clock] { return clock.is_overdue(); },
                         .failed_at = &failed_at,
                         .flows_run = assets.ramps.empty() ? nullptr : &draft.step.flows_run});
    note_end();
    // The read of another Flow or a lexicon may have met a failing store.
    if (!effects) return failed(effects.error(), effects.error().message);
    // A failed call counts against the Flow that made it, never against the Flow for errors.
    count_in_ramps(
        draft, assets, draft.step.flows_run,
        start.failure == nullptr ? met_failed_call(event, draft.step.flows_run) : std::nullopt);
    draft.step.flow_id = version.flow_id;
    draft.step.notes = std::move(effects->notes);
    return settled(apply(draft, speaker, std::move(*effects), endpoint, start.flow));
  } catch (const std::exception& error) {
    note_end();
    return TurnFailure(caught(error, failed_at));
  }
}

}  // namespace

Result<TurnFailure> run_event(BatchDraft& draft, const Event& event) {
  model::fault_point("turn.before_run");
  // The question may have been answered while its time-out was in the inbox.
  if (event.type == EventType::time_out && !waits_for(draft.session, event)) {
    draft.step.ended = "the question no longer waits";
    return TurnFailure();
  }
  auto endpoint = draft.context.assets.endpoint(draft.input.key.endpoint_id);
  if (!endpoint) return failed(endpoint.error(), "its Endpoint is gone");
  if (is_notify(event.type)) return settled(say(draft, event, *endpoint));
  auto assets = draft.context.assets.project(draft.input.key.project_id);
  if (!assets) {
    return failed(assets.error(), "its project can't be read: " + assets.error().message);
  }
  if (event.type == EventType::follow_up && event.follow_up) {
    auto taken = take_up(draft, event, *endpoint, **assets);
    if (!taken) return fail(taken.error());
    if (*taken == TakenUp::settled) return TurnFailure();
  }
  const auto is_behind = is_taken_behind(draft, event, **endpoint, **assets);
  if (!is_behind) return failed(is_behind.error(), is_behind.error().message);
  auto flow = *is_behind
                  ? draft.context.assets.flow_for(**assets, (*endpoint)->flow_id, draft.input.key)
                  : flow_for(draft, event, **endpoint, **assets);
  if (!flow) return failed(flow.error(), "its Flow can't run: " + flow.error().message);
  const bool is_follow_up_flow =
      !*is_behind && runs_follow_up(draft.session, event, **endpoint, **flow);
  return run_turn(
      draft, event, *endpoint, **assets,
      {.flow = *flow, .session = std::move(draft.session), .is_follow_up_flow = is_follow_up_flow});
}

Result<bool> run_error_flow(BatchDraft& draft, const Event& event, const EndpointPtr& endpoint,
                            const std::string& reason) {
  const std::string& id = endpoint->error_flow_id;
  if (id.empty()) return false;
  const bool resumes = !model::is_input(event.type);
  if (resumes && (!draft.session.execution || draft.session.execution->flow_id == id)) return false;
  auto assets = draft.context.assets.project(draft.input.key.project_id);
  if (!assets) return none_unless_store_failed(assets.error());
  if (!resumes && flows::flow_of_input(draft.session, event, *endpoint, **assets) == id)
    return false;
  auto flow = draft.context.assets.flow_for(**assets, id, draft.input.key);
  if (!flow) return none_unless_store_failed(flow.error());
  // Passes a copy of the session: a failure of this Turn must not change the draft's.
  auto failure = run_turn(
      draft, event, endpoint, **assets,
      {.flow = *flow, .session = draft.session, .is_follow_up_flow = true, .failure = &reason});
  if (!failure) return fail(failure.error());
  if (!*failure) return true;
  draft.batch.after.log_lines.push_back("the Flow for errors has failed, too: " + **failure);
  count_in_ramps(draft, **assets, draft.step.flows_run,
                 model::PinnedFlow{draft.step.flow, draft.step.version});
  draft.step.flow.clear();
  return false;
}

}  // namespace conversed::daemon
