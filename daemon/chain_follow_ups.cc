// What becomes of follow-ups: they wait in the store, where a user's message takes them back, until
// the moment they run.
#include <optional>
#include <string>
#include <utility>

#include "daemon/chain_builder.h"
#include "flows/follow_up.h"
#include "store/follow_ups.h"
#include "store/usage.h"

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

// Whether it is still to come, as far as this chain has got.
Result<bool> ChainBuilder::follow_up_waits(const std::string& id) const {
  if (chain_.unit.follow_ups_cancelled) return false;
  for (const Claim& claim : chain_.unit.claims) {
    if (claim.kind == Claim::Kind::follow_up && claim.id == id) return false;
  }
  return context_.follow_ups.waits(id);
}

void ChainBuilder::cancel_follow_ups() {
  chain_.unit.follow_ups_cancelled = true;
  chain_.unit.follow_ups.clear();
  // What this chain said itself has not begun to be delivered, either.
  std::erase_if(chain_.unit.outputs, [](const auto& output) { return output.withdrawable; });
  chain_.changes = true;
}

Result<bool> ChainBuilder::is_within_quota(const model::Endpoint& endpoint,
                                           const model::ProjectAssets& assets) const {
  if (!assets.journey || assets.journey->follow_ups_per_month == 0) return true;
  auto used = context_.usage.used(endpoint.organisation_id, follow_up_counter(endpoint),
                                  store::month_of(context_.clock.now()));
  if (!used) return model::fail(used.error());
  return *used < assets.journey->follow_ups_per_month;
}

// Its claim is consumed by now. `settled`: there is no Flow to run.
Result<ChainBuilder::FollowUp> ChainBuilder::take_up(const Event& event,
                                                     const EndpointPtr& endpoint,
                                                     const model::ProjectAssets& assets) {
  const auto now = context_.clock.now();
  auto within_quota = is_within_quota(*endpoint, assets);
  if (!within_quota) return model::fail(within_quota.error());
  const auto fate = flows::fate_of(event, session_, assets.journey, now);
  chain_.changes = true;
  if (fate == flows::FollowUpFate::quiet_time) {
    chain_.unit.follow_ups.push_back(flows::postponed(event, *assets.journey->quiet_hours, now));
    return FollowUp::settled;
  }
  if (fate != flows::FollowUpFate::runs || !*within_quota) {
    ++chain_.follow_ups_dropped;
    return FollowUp::settled;
  }
  ++chain_.follow_ups_sent;
  chain_.unit.quota.push_back({endpoint->organisation_id, follow_up_counter(*endpoint), 1});
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
