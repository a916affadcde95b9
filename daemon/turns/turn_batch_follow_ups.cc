// What becomes of follow-ups: they wait in the store, where a user's message takes them back, until
// the moment they run.
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "daemon/timers/timer_clock.h"
#include "daemon/turns/turn_batch_builder.h"
#include "flows/turn/follow_up.h"
#include "store/commit/usage.h"
#include "store/conversation/follow_ups.h"

namespace conversed::daemon {

using model::Claim;
using model::Event;
using model::Result;

namespace {

// Of one project, in its organisation's usage.
std::string follow_up_counter(const model::Endpoint& endpoint) {
  return "followUps " + endpoint.project_id;
}

}  // namespace

// Whether it is still to come, as far as this batch has got.
Result<bool> TurnBatchBuilder::follow_up_waits(const std::string& id) const {
  if (batch_.commit.follow_ups.cancelled) return false;
  for (const Claim& claim : batch_.commit.claims) {
    if (claim.kind == Claim::Kind::follow_up && claim.id == id) return false;
  }
  return context_.store.follow_ups().waits(id);
}

void TurnBatchBuilder::cancel_follow_ups() {
  batch_.commit.follow_ups.cancelled = true;
  batch_.commit.follow_ups.added.clear();
  // What this batch said itself has not begun to be delivered, either.
  std::erase_if(batch_.commit.outputs, [](const auto& output) { return output.withdrawable; });
  batch_.changes = true;
}

// A follow-up Flow that waits for a call, or sleeps, says nothing more once the user has answered.
void TurnBatchBuilder::abandon_follow_up() {
  if (!session_.execution || session_.execution->source != model::EventType::follow_up) return;
  const std::string pending = session_.execution->pending_call_id;
  session_.execution.reset();
  auto& started = batch_.commit.calls.started;
  // Begun in this batch, nobody knows of it yet.
  if (std::erase_if(started, [&](const auto& call) { return call.id == pending; }) == 0) {
    batch_.commit.calls.cancelled.push_back(pending);
  }
  batch_.changes = true;
}

// Whether it is a follow-up's Flow that runs, or goes on: it may be the Endpoint's own, and leaves
// alone what that waits for in any case.
bool TurnBatchBuilder::runs_follow_up_flow(const Event& event, const model::Endpoint& endpoint,
                                           const api::CompiledFlow& flow) const {
  if (event.type == model::EventType::follow_up) return true;
  const auto waiting = is_input(event.type) ? waiting_follow_up_flow(event, endpoint)
                                            : flows::follow_up_flow_of(session_);
  return waiting == flow.flow->name();
}

std::chrono::milliseconds TurnBatchBuilder::timer_offset() const {
  return context_.timer_clock == nullptr ? std::chrono::milliseconds(0)
                                         : context_.timer_clock->offset();
}

model::Timestamp TurnBatchBuilder::timer_now() const {
  return context_.timer_clock == nullptr ? context_.clock.now() : context_.timer_clock->now();
}

Result<bool> TurnBatchBuilder::is_within_quota(const model::Endpoint& endpoint,
                                               const model::ProjectAssets& assets) const {
  if (!assets.journey || assets.journey->follow_ups_per_month == 0) return true;
  auto used = context_.store.usage().used(endpoint.organisation_id, follow_up_counter(endpoint),
                                          store::month_of(context_.clock.now()));
  if (!used) return model::fail(used.error());
  return *used < assets.journey->follow_ups_per_month;
}

// Its claim is consumed by now. `settled`: there is no Flow to run.
Result<TurnBatchBuilder::FollowUp> TurnBatchBuilder::take_up(const Event& event,
                                                             const EndpointPtr& endpoint,
                                                             const model::ProjectAssets& assets) {
  const auto now = context_.clock.now();
  auto within_quota = is_within_quota(*endpoint, assets);
  if (!within_quota) return model::fail(within_quota.error());
  const auto offset = timer_offset();
  Event by_wall_clock = event;
  auto& expires_at = by_wall_clock.follow_up->expires_at;
  if (expires_at) *expires_at -= offset;
  const auto fate = flows::fate_of(by_wall_clock, session_, assets.journey, now);
  batch_.changes = true;
  if (fate == flows::FollowUpFate::quiet_time) {
    auto later = flows::postponed(event, *assets.journey->quiet_hours, now);
    later.due_at += offset;
    batch_.commit.follow_ups.added.push_back(std::move(later));
    return FollowUp::settled;
  }
  if (fate != flows::FollowUpFate::runs || !*within_quota) {
    ++batch_.after.follow_ups_dropped;
    return FollowUp::settled;
  }
  ++batch_.after.follow_ups_sent;
  batch_.commit.quota.push_back({endpoint->organisation_id, follow_up_counter(*endpoint), 1});
  if (!event.follow_up->flow_id.empty()) return FollowUp::runs;
  auto effects = flows::follow_up_effects(std::move(session_), event, now);
  session_ = std::move(effects.session);
  model::Execution said;
  said.input_id = event.id;
  said.source = event.type;
  auto settled = settle_outputs(said, true, false, std::move(effects.outputs), endpoint);
  if (!settled) return model::fail(settled.error());
  return FollowUp::settled;
}

}  // namespace conversed::daemon
