#include "daemon/calls/call_queue.h"

#include <algorithm>

#include "store/commit/call_target.h"

namespace conversed::daemon {

using model::Timestamp;

namespace {

// A share of nothing would never be served.
std::size_t share(std::size_t all, std::size_t parts, std::size_t of) {
  return std::max<std::size_t>(1, all * parts / of);
}

// Of an organization: of all lanes, and of all calls in hand.
std::size_t of_organization(std::size_t all) {
  return share(all, 1, 4);
}

// Of a project: of its organization's share.
std::size_t of_project(std::size_t organization) {
  return share(organization, 3, 4);
}

std::size_t half(std::size_t all) {
  return share(all, 1, 2);
}

}  // namespace

std::size_t CallQueue::Share::*CallQueue::kind_of(const Lane& lane) {
  if (lane.target == store::knowledge_target) return &Share::searches;
  return lane.target == store::code_target ? &Share::scripts : &Share::requests;
}

std::array<CallQueue::Share*, 2> CallQueue::shares_of(const Lane& lane) {
  return {&organizations_.at(lane.organisation_id), &projects_.at(lane.project_id)};
}

CallQueue::Lane* CallQueue::find_lane(const std::string& project_id, const std::string& target) {
  const auto found = lanes_.find({project_id, target});
  return found == lanes_.end() ? nullptr : &found->second;
}

bool CallQueue::is_full(const std::string& organisation_id, const std::string& project_id) const {
  const auto has = [](const Shares& shares, const std::string& id, std::size_t lanes) {
    const auto found = shares.find(id);
    return found != shares.end() && found->second.lanes >= lanes;
  };
  const auto most = of_organization(limits_.lanes);
  return has(organizations_, organisation_id, most) || has(projects_, project_id, of_project(most));
}

CallQueue::Lane* CallQueue::add_lane(Name name, const std::string& upstream) {
  if (lanes_.size() >= limits_.lanes || is_full(name.organisation_id, name.project_id)) {
    passed_over_ = true;
    return nullptr;
  }
  Lane& lane = lanes_[{name.project_id, name.target}];
  ++organizations_[name.organisation_id].lanes;
  ++projects_[name.project_id].lanes;
  lane.organisation_id = std::move(name.organisation_id);
  lane.project_id = std::move(name.project_id);
  lane.target = std::move(name.target);
  lane.upstream = upstream;
  return &lane;
}

bool CallQueue::wants_look() {
  if (!passed_over_ || lanes_.size() > limits_.lanes / 2) return false;
  const auto crowded = [](const Shares& shares, std::size_t most) {
    return std::ranges::any_of(shares,
                               [most](const auto& entry) { return entry.second.lanes > most / 2; });
  };
  const auto most = of_organization(limits_.lanes);
  if (crowded(organizations_, most) || crowded(projects_, of_project(most))) return false;
  passed_over_ = false;
  return true;
}

CallQueue::Lane* CallQueue::next(Timestamp now) {
  turns_.wake_due(now);
  return turns_.next(now, [this](const Lane& lane) { return room(lane) > 0; });
}

std::size_t CallQueue::room(const Lane& lane) const {
  const Share& organization = organizations_.at(lane.organisation_id);
  const Share& project = projects_.at(lane.project_id);
  const auto busy = upstreams_.find(lane.upstream);
  const std::size_t to_upstream = busy == upstreams_.end() ? 0 : busy->second;
  const auto room =
      std::min({room_left(limits_.in_hand, calls_.size()),
                room_left(of_organization(limits_.in_hand), organization.in_hand),
                room_left(limits_.per_organization, organization.under_way()),
                room_left(of_project(limits_.per_organization), project.under_way())});
  if (lane.target == store::knowledge_target) {
    return std::min({room, room_left(limits_.searches, to_upstream),
                     room_left(half(limits_.searches), organization.searches)});
  }
  if (lane.target == store::code_target) {
    return std::min({room, room_left(limits_.scripts, to_upstream),
                     room_left(half(limits_.scripts), organization.scripts)});
  }
  return std::min(
      {room, room_left(limits_.requests, requests_), room_left(limits_.per_upstream, to_upstream)});
}

void CallQueue::read_all(Lane& lane, std::optional<Timestamp> next_due) {
  turns_.read_all(lane, next_due);
  drop_if_idle(lane);
}

CallQueue::Call& CallQueue::take(Lane& lane, store::Calls::Found found) {
  Call& call = calls_[found.call.id];
  call.pending = std::move(found.call);
  call.attempts = found.attempts;
  call.lane = &lane;
  call.under_way = true;
  call.began = std::chrono::steady_clock::now();
  ++lane.in_hand;
  for (Share* each : shares_of(lane)) {
    ++each->in_hand;
    ++(each->*kind_of(lane));
  }
  ++upstreams_[lane.upstream];
  if (call.pending.http) ++requests_;
  return call;
}

void CallQueue::landed(Call& call) {
  if (!std::exchange(call.under_way, false)) return;
  for (Share* each : shares_of(*call.lane)) --(each->*kind_of(*call.lane));
  const auto upstream = upstreams_.find(call.lane->upstream);
  if (--upstream->second == 0) upstreams_.erase(upstream);
  if (call.pending.http) --requests_;
}

void CallQueue::release(const std::string& id, std::optional<Timestamp> due) {
  const auto found = calls_.find(id);
  landed(found->second);
  Lane& lane = *found->second.lane;
  calls_.erase(found);
  --lane.in_hand;
  for (Share* each : shares_of(lane)) --each->in_hand;
  if (due) wake(lane, *due);
  drop_if_idle(lane);
}

void CallQueue::drop_if_idle(Lane& lane) {
  if (lane.in_turn || lane.due || lane.in_hand > 0) return;
  const auto leave = [](Shares& shares, const std::string& id) {
    const auto found = shares.find(id);
    if (--found->second.lanes == 0) shares.erase(found);
  };
  leave(organizations_, lane.organisation_id);
  leave(projects_, lane.project_id);
  lanes_.erase({std::string(lane.project_id), std::string(lane.target)});
}

}  // namespace conversed::daemon
