#include "daemon/turns/batch_follow_ups.h"

#include <utility>

#include "api/live/assets_cache.h"
#include "daemon/turns/batch_outputs.h"
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

// The counter of one project's follow-ups in the usage of its organisation.
std::string follow_up_counter(const model::Endpoint& endpoint) {
  return "followUps " + endpoint.project_id;
}

Result<bool> is_within_quota(const BatchDraft& draft, const model::Endpoint& endpoint,
                             const model::ProjectAssets& assets) {
  if (!assets.journey || assets.journey->follow_ups_per_month == 0) return true;
  auto used =
      draft.context.store.usage().used(endpoint.organisation_id, follow_up_counter(endpoint),
                                       store::month_of(draft.context.clock.now()));
  if (!used) return fail(used.error());
  return *used < assets.journey->follow_ups_per_month;
}

}  // namespace

void cancel_follow_ups(BatchDraft& draft) {
  auto& commit = draft.commit();
  commit.follow_ups.cancelled = true;
  commit.follow_ups.added.clear();
  draft.step.follow_ups_before = 0;
  std::erase_if(commit.outputs, [](const auto& output) { return output.withdrawable; });
}

void abandon_follow_up(BatchDraft& draft) {
  auto& execution = draft.session.execution;
  if (!execution || execution->source != EventType::follow_up) return;
  auto& calls = draft.commit().calls;
  const auto is_its = [&](const auto& call) { return call.id == execution->pending_call_id; };
  // A call of this batch is not in the store yet.
  if (std::erase_if(calls.started, is_its) == 0) {
    calls.cancelled.push_back(execution->pending_call_id);
  }
  execution.reset();
}

bool runs_follow_up(const model::Session& session, const Event& event,
                    const model::Endpoint& endpoint, const api::CompiledFlow& flow) {
  if (event.type == EventType::follow_up) return true;
  const auto waiting = model::is_input(event.type) ? flows::waiting_flow(session, event, endpoint)
                                                   : flows::follow_up_flow_of(session);
  return waiting == flow.flow->name();
}

Result<TakenUp> take_up(BatchDraft& draft, const Event& event, const EndpointPtr& endpoint,
                        const model::ProjectAssets& assets) {
  const auto now = draft.step.began_at;
  auto within_quota = is_within_quota(draft, *endpoint, assets);
  if (!within_quota) return fail(within_quota.error());
  const auto offset = draft.timer_offset();
  Event by_wall_clock = event;
  auto& expires_at = by_wall_clock.follow_up->expires_at;
  if (expires_at) *expires_at -= offset;
  const auto fate = flows::fate_of(by_wall_clock, draft.session, assets.journey, now);
  auto& commit = draft.commit();
  if (fate == flows::FollowUpFate::quiet_time) {
    auto later = flows::postponed(event, *assets.journey->quiet_hours, now);
    later.due_at += offset;
    commit.follow_ups.added.push_back(std::move(later));
    draft.step.ended = "it was put off until the quiet hours end";
    return TakenUp::settled;
  }
  if (fate != flows::FollowUpFate::runs || !*within_quota) {
    ++draft.batch.after.follow_ups_dropped;
    draft.step.ended = *within_quota ? "it came too late, or is one too many"
                                     : "the month's quota of follow-ups is used up";
    return TakenUp::settled;
  }
  ++draft.batch.after.follow_ups_sent;
  commit.quota.push_back({endpoint->organisation_id, follow_up_counter(*endpoint), 1});
  if (!event.follow_up->flow_id.empty()) return TakenUp::runs_flow;
  auto effects = flows::follow_up_effects(std::move(draft.session), event, now);
  draft.session = std::move(effects.session);
  auto settled = settle(draft, {event.id, event.type}, ExecutionState::at_rest,
                        std::move(effects.outputs), endpoint);
  if (!settled) return fail(settled.error());
  return TakenUp::settled;
}

}  // namespace conversed::daemon
