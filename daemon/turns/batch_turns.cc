#include "daemon/turns/batch_turns.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "api/live/assets_cache.h"
#include "daemon/turns/batch_claims.h"
#include "daemon/turns/turn_clock.h"
#include "flows/turn/turn.h"
#include "store/runtime/fault_points.h"

namespace conversed::daemon {

using model::Event;
using model::EventType;
using model::fail;
using model::Result;

namespace {

// A failure of the store is an error; any other one is the event's.
Result<BatchTurns::Failure> failed(const model::Error& error, const std::string& reason) {
  if (is_store_failure(error)) return fail(error);
  return BatchTurns::Failure(reason);
}

Result<BatchTurns::Failure> settled(const Result<void>& result) {
  if (!result) return fail(result.error());
  return BatchTurns::Failure();
}

// The project's Flows and lexicons from the cache of assets, so that a look seldom reads the store.
class ProjectLibrary final : public flows::Library {
 public:
  // Both must outlive it.
  ProjectLibrary(api::AssetsCache& cache, const model::ProjectAssets& project)
      : cache_(cache), project_(project) {}

  [[nodiscard]] Result<FoundFlow> flow(const std::string& name,
                                       std::int64_t version) const override {
    const auto id = project_.flow_ids.find(name);
    if (id == project_.flow_ids.end()) {
      return fail(model::Errc::not_found, "there is no such Flow");
    }
    auto found = version == 0 ? cache_.newest_flow(id->second) : cache_.flow(id->second, version);
    if (!found) return fail(found.error());
    return FoundFlow{(*found)->flow, (*found)->version.version};
  }
  [[nodiscard]] Result<std::shared_ptr<const flows::lexicon::Lexicon>> find_lexicon(
      const std::string& name) const override {
    return cache_.lexicon(project_.project_id, name);
  }

 private:
  api::AssetsCache& cache_;
  const model::ProjectAssets& project_;
};

}  // namespace

Result<BatchTurns::Failure> BatchTurns::run(const Event& event) {
  model::fault_point("turn.before_run");
  // While it was in the inbox, its question may have been answered.
  if (event.type == EventType::time_out && !waits_for(draft_.session, event)) return Failure();
  auto endpoint = draft_.context.assets.endpoint(draft_.input.key.endpoint_id);
  if (!endpoint) return failed(endpoint.error(), "its Endpoint is gone");
  if (is_notify(event.type)) return settled(say(event, *endpoint));
  auto assets = draft_.context.assets.project(draft_.input.key.project_id);
  if (!assets) {
    return failed(assets.error(), "its project can't be read: " + assets.error().message);
  }
  if (event.type == EventType::follow_up && event.follow_up) {
    auto taken = follow_ups_.take_up(event, *endpoint, **assets);
    if (!taken) return fail(taken.error());
    if (*taken == BatchFollowUps::Outcome::settled) return Failure();
  }
  return run_turn(event, *endpoint, **assets);
}

Result<BatchTurns::FlowPtr> BatchTurns::flow_for(const Event& event,
                                                 const model::Endpoint& endpoint,
                                                 const model::ProjectAssets& assets) {
  auto& cache = draft_.context.assets;
  if (event.follow_up && !event.follow_up->flow_id.empty()) {
    return cache.newest_flow(event.follow_up->flow_id);
  }
  if (model::is_input(event.type)) {
    const auto follow_up = assets.flow_ids.find(follow_ups_.waiting_flow(event, endpoint));
    return cache.newest_flow(follow_up != assets.flow_ids.end() ? follow_up->second
                                                                : endpoint.flow_id);
  }
  const auto& execution = *draft_.session.execution;
  return cache.flow(execution.flow_id, execution.flow_version);
}

Result<BatchTurns::Failure> BatchTurns::run_turn(const Event& event, const EndpointPtr& endpoint,
                                                 const model::ProjectAssets& assets) {
  const auto& context = draft_.context;
  auto flow = flow_for(event, *endpoint, assets);
  if (!flow) return failed(flow.error(), "its Flow can't run: " + flow.error().message);
  ++draft_.batch.after.turns;
  const Speaker speaker =
      model::is_input(event.type) ? Speaker::of(event) : Speaker::of(*draft_.session.execution);
  const bool is_follow_up_flow = follow_ups_.runs_flow(event, *endpoint, **flow);
  const ProjectLibrary library(context.assets, assets);
  const TurnClock clock;
  const auto begun = context.stopwatch();
  try {
    auto effects = flows::run_turn({.flow = *(*flow)->flow,
                                    .assets = assets,
                                    .endpoint = *endpoint,
                                    .session = std::move(draft_.session),
                                    .profile = draft_.profile,
                                    .event = event,
                                    .now = context.clock.now(),
                                    .limits = context.limits,
                                    .flow_version = (*flow)->version.version,
                                    .library = &library,
                                    .is_follow_up_flow = is_follow_up_flow,
                                    .is_overdue = [&clock] { return clock.is_overdue(); }});
    spent_ += context.stopwatch() - begun;
    // Looking for another Flow or a lexicon can meet a store that is down.
    if (!effects) return failed(effects.error(), effects.error().message);
    return settled(apply(speaker, std::move(*effects), endpoint, *flow));
  } catch (const std::exception&) {
    return Failure("the Turn ended with an internal error");
  }
}

// Past the Flow, whatever the session is doing.
Result<void> BatchTurns::say(const Event& event, const EndpointPtr& endpoint) {
  auto effects =
      flows::notify_effects(std::move(draft_.session), event, draft_.context.clock.now());
  draft_.session = std::move(effects.session);
  return outputs_.settle({event.id, event.type}, BatchOutputs::Execution::at_rest,
                         std::move(effects.outputs), endpoint);
}

Result<void> BatchTurns::apply(const Speaker& speaker, model::Effects effects,
                               const EndpointPtr& endpoint, const FlowPtr& flow) {
  draft_.session = std::move(effects.session);
  if (auto& execution = draft_.session.execution) {
    execution->keyed = speaker.keyed;
    execution->answer_until = speaker.answer_until;
    execution->flow_id = flow->version.flow_id;
    execution->flow_version = flow->version.version;
  }
  if (effects.profile) {
    draft_.profile.data = std::move(effects.profile->data);
    draft_.commit().profile.data = draft_.profile.data;
  }
  if (effects.follow_ups_cancelled) follow_ups_.cancel();
  add_waits(effects);
  std::ranges::move(effects.log, std::back_inserter(draft_.batch.after.log_lines));
  return outputs_.settle(
      speaker,
      effects.execution_ended ? BatchOutputs::Execution::at_rest : BatchOutputs::Execution::goes_on,
      std::move(effects.outputs), endpoint);
}

// A Turn knows the wall clock only. Its waits go by the clock of timers, so that setting the wall
// clock does not change them.
void BatchTurns::add_waits(model::Effects& effects) {
  const auto offset = draft_.timer_offset();
  for (auto& follow_up : effects.follow_ups) {
    follow_up.due_at += offset;
    if (follow_up.plan.expires_at) *follow_up.plan.expires_at += offset;
    draft_.commit().follow_ups.added.push_back(std::move(follow_up));
  }
  for (auto* wait : {&effects.call, &effects.time_out}) {
    if (!*wait) continue;
    if ((*wait)->due_at) *(*wait)->due_at += offset;
    draft_.commit().calls.started.push_back(std::move(**wait));
  }
}

}  // namespace conversed::daemon
