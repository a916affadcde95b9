#include "daemon/calls/call_queue.h"

#include <algorithm>

#include "store/commit/call_target.h"

namespace conversed::daemon {

using model::Timestamp;

namespace {

constexpr std::size_t part_of_project = 4;  // of all lanes, and of all calls in hand

std::size_t part(std::size_t all) {
  return std::max<std::size_t>(1, all / part_of_project);
}

}  // namespace

CallQueue::Lane* CallQueue::find_lane(const std::string& project_id, const std::string& target) {
  const auto found = lanes_.find({project_id, target});
  return found == lanes_.end() ? nullptr : &found->second;
}

bool CallQueue::is_full(const std::string& project_id) const {
  const auto project = projects_.find(project_id);
  return project != projects_.end() && project->second.lanes >= part(limits_.lanes);
}

CallQueue::Lane* CallQueue::add_lane(const std::string& project_id, const std::string& target,
                                     const std::string& upstream) {
  if (lanes_.size() >= limits_.lanes || is_full(project_id)) {
    passed_over_ = true;
    return nullptr;
  }
  Lane& lane = lanes_[{project_id, target}];
  lane.project_id = project_id;
  lane.target = target;
  lane.upstream = upstream;
  ++projects_[project_id].lanes;
  return &lane;
}

bool CallQueue::wants_look() {
  if (!passed_over_ || lanes_.size() > limits_.lanes / 2) return false;
  const auto crowded = [&](const auto& entry) {
    return entry.second.lanes > part(limits_.lanes) / 2;
  };
  if (std::ranges::any_of(projects_, crowded)) return false;
  passed_over_ = false;
  return true;
}

CallQueue::Lane* CallQueue::next(Timestamp now) {
  turns_.wake_due(now);
  return turns_.next(now, [this](const Lane& lane) { return room(lane) > 0; });
}

std::size_t CallQueue::room(const Lane& lane) const {
  const Project& project = projects_.at(lane.project_id);
  const auto busy = upstreams_.find(lane.upstream);
  const std::size_t to_upstream = busy == upstreams_.end() ? 0 : busy->second;
  const auto room = std::min({room_left(limits_.in_hand, calls_.size()),
                              room_left(part(limits_.in_hand), project.in_hand),
                              room_left(limits_.per_project, project.under_way)});
  if (lane.target == store::knowledge_target) {
    return std::min(room, room_left(limits_.searches, to_upstream));
  }
  if (lane.target == store::code_target) {
    const std::size_t half = std::max<std::size_t>(1, limits_.scripts / 2);
    return std::min(
        {room, room_left(limits_.scripts, to_upstream), room_left(half, lane.under_way)});
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
  ++lane.under_way;
  Project& project = projects_.at(lane.project_id);
  ++project.in_hand;
  ++project.under_way;
  ++upstreams_[lane.upstream];
  if (call.pending.http) ++requests_;
  return call;
}

void CallQueue::landed(Call& call) {
  if (!std::exchange(call.under_way, false)) return;
  --call.lane->under_way;
  --projects_.at(call.lane->project_id).under_way;
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
  --projects_.at(lane.project_id).in_hand;
  if (due) wake(lane, *due);
  drop_if_idle(lane);
}

void CallQueue::drop_if_idle(Lane& lane) {
  if (lane.in_turn || lane.due || lane.in_hand > 0) return;
  const auto project = projects_.find(lane.project_id);
  if (--project->second.lanes == 0) projects_.erase(project);
  lanes_.erase({std::string(lane.project_id), std::string(lane.target)});
}

}  // namespace conversed::daemon
