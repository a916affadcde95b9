#include "daemon/turns/batch_follow_ups.h"

#include <utility>

#include "api/live/assets_cache.h"
#include "flows/turn/follow_up.h"
#include "flows/turn/standing.h"
#include "flows/turn/turn.h"
#include "store/commit/usage.h"
#include "store/store.h"

namespace conversed::daemon {

using model::Event;
using model::EventType;
using model::fail;
using model::Result;

namespace {

// Of one project, in its organisation's usage.
std::string follow_up_counter(const model::Endpoint& endpoint) {
  return "followUps " + endpoint.project_id;
}

}  // namespace

void BatchFollowUps::cancel() {
  auto& commit = draft_.commit();
  commit.follow_ups.cancelled = true;
  commit.follow_ups.added.clear();
  std::erase_if(commit.outputs, [](const auto& output) { return output.withdrawable; });
}

void BatchFollowUps::abandon_running() {
  auto& execution = draft_.session.execution;
  if (!execution || execution->source != EventType::follow_up) return;
  auto& calls = draft_.commit().calls;
  const auto is_its = [&](const auto& call) { return call.id == execution->pending_call_id; };
  // A call of this batch is not in the store yet.
  if (std::erase_if(calls.started, is_its) == 0) {
    calls.cancelled.push_back(execution->pending_call_id);
  }
  execution.reset();
}

std::string BatchFollowUps::waiting_flow(const Event& event,
                                         const model::Endpoint& endpoint) const {
  const auto& session = draft_.session;
  if (event.type != EventType::time_out) {
    if (flows::starts_afresh(session, endpoint, event.accepted_at)) return {};
  } else if (event.claim && flows::is_time_out_behind(session, event.claim->id)) {
    return {};
  }
  return flows::follow_up_flow_of(session);
}

bool BatchFollowUps::runs_flow(const Event& event, const model::Endpoint& endpoint,
                               const api::CompiledFlow& flow) const {
  if (event.type == EventType::follow_up) return true;
  const auto waiting = model::is_input(event.type) ? waiting_flow(event, endpoint)
                                                   : flows::follow_up_flow_of(draft_.session);
  return waiting == flow.flow->name();
}

Result<bool> BatchFollowUps::is_within_quota(const model::Endpoint& endpoint,
                                             const model::ProjectAssets& assets) const {
  if (!assets.journey || assets.journey->follow_ups_per_month == 0) return true;
  auto used =
      draft_.context.store.usage().used(endpoint.organisation_id, follow_up_counter(endpoint),
                                        store::month_of(draft_.context.clock.now()));
  if (!used) return fail(used.error());
  return *used < assets.journey->follow_ups_per_month;
}

Result<BatchFollowUps::Outcome> BatchFollowUps::take_up(const Event& event,
                                                        const EndpointPtr& endpoint,
                                                        const model::ProjectAssets& assets) {
  const auto now = draft_.context.clock.now();
  auto within_quota = is_within_quota(*endpoint, assets);
  if (!within_quota) return fail(within_quota.error());
  const auto offset = draft_.timer_offset();
  Event by_wall_clock = event;
  auto& expires_at = by_wall_clock.follow_up->expires_at;
  if (expires_at) *expires_at -= offset;
  const auto fate = flows::fate_of(by_wall_clock, draft_.session, assets.journey, now);
  auto& commit = draft_.commit();
  if (fate == flows::FollowUpFate::quiet_time) {
    auto later = flows::postponed(event, *assets.journey->quiet_hours, now);
    later.due_at += offset;
    commit.follow_ups.added.push_back(std::move(later));
    return Outcome::settled;
  }
  if (fate != flows::FollowUpFate::runs || !*within_quota) {
    ++draft_.batch.after.follow_ups_dropped;
    return Outcome::settled;
  }
  ++draft_.batch.after.follow_ups_sent;
  commit.quota.push_back({endpoint->organisation_id, follow_up_counter(*endpoint), 1});
  if (!event.follow_up->flow_id.empty()) return Outcome::runs_flow;
  auto effects = flows::follow_up_effects(std::move(draft_.session), event, now);
  draft_.session = std::move(effects.session);
  auto settled = outputs_.settle({event.id, event.type}, BatchOutputs::Execution::at_rest,
                                 std::move(effects.outputs), endpoint);
  if (!settled) return fail(settled.error());
  return Outcome::settled;
}

}  // namespace conversed::daemon
