#include "daemon/call_queue.h"

#include <algorithm>
#include <vector>

namespace conversed::daemon {
namespace {

constexpr std::size_t calls_of_lane = 2;      // times `per_upstream`
constexpr std::size_t calls_of_upstream = 4;  // likewise
constexpr std::size_t part_of_project = 4;    // of all calls
constexpr std::size_t part_of_upstream = 8;   // of all bytes

std::size_t size_of(const model::PendingCall& call) {
  if (call.search) return call.search->text.size();
  std::size_t size = call.http->url.size() + call.http->body.size();
  for (const auto& [name, value] : call.http->headers) size += name.size() + value.size();
  return size;
}

}  // namespace

bool CallQueue::knows(const std::string& id) const {
  return calls_.contains(id) || noted_.contains(id);
}

CallQueue::Lane& CallQueue::lane_of(const Key& key, std::size_t at_once) {
  const auto [found, is_new] = lanes_.try_emplace(key);
  Lane& lane = found->second;
  if (is_new) {
    lane.key = key;
    lane.upstream = &upstreams_[key.first];
    lane.project = &projects_[key.second];
    ++lane.upstream->lanes;
    ++lane.project->lanes;
    lane.project->at_once = limits_.per_project;
  }
  lane.upstream->at_once = at_once;
  return lane;
}

// One call always fits, however large it is: else it would never be made.
bool CallQueue::fits(const Lane& lane, std::size_t bytes) const {
  const Share& upstream = *lane.upstream;
  if (calls_.empty()) return true;
  return calls_.size() < limits_.calls && bytes_ + bytes <= limits_.bytes &&
         lane.calls < calls_of_lane * limits_.per_upstream &&
         upstream.calls < calls_of_upstream * limits_.per_upstream &&
         (upstream.calls == 0 || upstream.bytes + bytes <= limits_.bytes / part_of_upstream) &&
         lane.project->calls < std::max<std::size_t>(1, limits_.calls / part_of_project);
}

void CallQueue::take(model::PendingCall call, const std::string& upstream, std::size_t at_once) {
  Lane& lane = lane_of({upstream, call.session.project_id}, at_once);
  const std::size_t bytes = size_of(call);
  if (lane.noted.empty() && fits(lane, bytes)) return hold(lane, std::move(call), bytes);
  note(lane, std::move(call.id), bytes);
  drop_if_empty(lane);
}

void CallQueue::take_noted(model::PendingCall call, const std::string& upstream,
                           std::size_t at_once) {
  Lane& lane = lane_of({upstream, call.session.project_id}, at_once);
  const std::size_t bytes = size_of(call);
  hold(lane, std::move(call), bytes);
}

void CallQueue::hold(Lane& lane, model::PendingCall call, std::size_t bytes) {
  const std::string id = call.id;
  Call& held = calls_[id];
  held.pending = std::move(call);
  held.lane = &lane;
  held.bytes = bytes;
  ++lane.calls;
  bytes_ += bytes;
  for (Share* share : {lane.upstream, lane.project}) {
    ++share->calls;
    share->bytes += bytes;
  }
  make_ready(held);
}

void CallQueue::note(Lane& lane, std::string id, std::size_t bytes) {
  if (lane.noted.size() >= limits_.ids_per_lane || noted_.size() >= limits_.ids) {
    // What is noted of the lane tells when to look for the others.
    (lane.noted.empty() ? squeezed_ : lane.has_more) = true;
    return;
  }
  noted_.emplace(id, &lane);
  lane.noted.push_back({std::move(id), bytes});
  if (!std::exchange(lane.waits, true)) waiting_.push_back(&lane);
}

const std::string* CallQueue::wanted() {
  for (std::size_t left = waiting_.size(); left > 0; --left) {
    Lane& lane = *waiting_.front();
    if (!lane.noted.empty() && fits(lane, lane.noted.front().bytes)) return &lane.noted.front().id;
    waiting_.pop_front();
    lane.waits = !lane.noted.empty();
    if (lane.waits) waiting_.push_back(&lane);
  }
  return nullptr;
}

void CallQueue::unnote(const std::string& id) {
  const auto found = noted_.find(id);
  Lane& lane = *found->second;
  noted_.erase(found);
  lane.noted.pop_front();  // nothing else is wanted
  hungry_ = hungry_ || (lane.noted.empty() && std::exchange(lane.has_more, false));
  waiting_.pop_front();
  lane.waits = !lane.noted.empty();
  if (lane.waits) waiting_.push_back(&lane);
  drop_if_empty(lane);
}

bool CallQueue::has_room() const {
  return calls_.size() <= limits_.calls / 2 && bytes_ <= limits_.bytes / 2;
}

bool CallQueue::wants_scan() const {
  return hungry_ || (squeezed_ && has_room() && noted_.size() <= limits_.ids / 2);
}

void CallQueue::scan_begins() {
  hungry_ = false;
  squeezed_ = false;
  for (auto& [key, lane] : lanes_) lane.has_more = false;
}

void CallQueue::make_ready(Call& call) {
  Lane& lane = *call.lane;
  lane.ready.push_back(call.pending.id);
  if (!std::exchange(lane.in_turn, true)) ready_.push_back(&lane);
}

CallQueue::Call* CallQueue::next() {
  for (std::size_t left = ready_.size(); left > 0; --left) {
    Lane& lane = *ready_.front();
    ready_.pop_front();
    const bool may = !lane.ready.empty() && lane.upstream->under_way < lane.upstream->at_once &&
                     lane.project->under_way < lane.project->at_once;
    Call* call = nullptr;
    if (may) {
      call = &calls_.at(lane.ready.front());
      lane.ready.pop_front();
      call->under_way = true;
      ++lane.upstream->under_way;
      ++lane.project->under_way;
    }
    lane.in_turn = !lane.ready.empty();
    if (lane.in_turn) ready_.push_back(&lane);
    if (call != nullptr) return call;
  }
  return nullptr;
}

void CallQueue::landed(Call& call) {
  if (!std::exchange(call.under_way, false)) return;
  --call.lane->upstream->under_way;
  --call.lane->project->under_way;
}

void CallQueue::forget(const std::string& id) {
  const auto found = calls_.find(id);
  landed(found->second);
  Lane& lane = *found->second.lane;
  const std::size_t bytes = found->second.bytes;
  calls_.erase(found);
  --lane.calls;
  bytes_ -= bytes;
  for (Share* share : {lane.upstream, lane.project}) {
    --share->calls;
    share->bytes -= bytes;
  }
  drop_if_empty(lane);
}

void CallQueue::drop_ready(const std::function<bool(const model::PendingCall&)>& is_lost) {
  std::vector<std::string> dropped;
  for (auto& [key, lane] : lanes_) {
    std::erase_if(lane.ready, [&](const std::string& id) {
      const bool lost = is_lost(calls_.at(id).pending);
      if (lost) dropped.push_back(id);
      return lost;
    });
  }
  for (const auto& id : dropped) forget(id);
}

void CallQueue::drop_if_empty(Lane& lane) {
  if (lane.calls > 0 || !lane.noted.empty()) return;
  if (lane.in_turn) std::erase(ready_, &lane);
  if (lane.waits) std::erase(waiting_, &lane);
  const Key key = lane.key;
  if (--lane.upstream->lanes == 0) upstreams_.erase(key.first);
  if (--lane.project->lanes == 0) projects_.erase(key.second);
  lanes_.erase(key);
}

}  // namespace conversed::daemon
