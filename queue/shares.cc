#include "queue/shares.h"

#include <algorithm>
#include <utility>

namespace conversed::queue {
namespace {

// Shares that are kept though they have no lanes, before the quick ones of them go.
constexpr std::size_t max_idle = 1'000;

}  // namespace

Shares::Shares(std::size_t workers, bool fair, Now now)
    : workers_(std::max<std::size_t>(workers, 1)),
      most_workers_(fair && workers_ > 1 ? workers_ - 1 : workers_),
      now_(std::move(now)) {}

Share& Shares::join(const std::string& name) {
  if (shares_.size() > max_idle && !shares_.contains(name)) forget_idle();
  Share& share = shares_[name];
  if (share.lanes++ == 0) ++active_;
  return share;
}

void Shares::leave(Share& share) {
  if (--share.lanes == 0) --active_;
}

void Shares::forget_idle() {
  std::erase_if(shares_, [this](const Named::value_type& named) {
    const Share& share = named.second;
    return share.lanes == 0 && share.workers == 0 && !is_slow(share);
  });
}

void Shares::push(LaneNode& node) {
  Lane& lane = node.second;
  Share& share = *lane.share;
  if (share.arrived.empty() && share.others.empty()) turns_.push_back(&share);
  lane.ready_since = ++pushed_;
  (can_spill(lane) ? share.arrived : share.others).push_back(&node);
  ++ready_;
}

void Shares::clear() {
  for (Share* share : turns_) {
    share->arrived.clear();
    share->others.clear();
  }
  turns_.clear();
  ready_ = 0;
}

bool Shares::is_slow(const Share& share) const {
  return share.slow_until != Clock::time_point{} && share.slow_until > now_();
}

bool Shares::may_take(const Share& share) const {
  if (share.workers >= most_workers_) return false;
  return slow_workers_ < most_workers_ || !is_slow(share);
}

bool Shares::may_take() const {
  return std::ranges::any_of(turns_, [this](const Share* share) { return may_take(*share); });
}

void Shares::take_lane(Share& share, std::deque<LaneNode*>& from, Hold& hold) {
  hold.lanes.push_back(from.front());
  from.pop_front();
  --ready_;
  if (share.arrived.empty() && share.others.empty()) std::erase(turns_, &share);
}

std::optional<Shares::Hold> Shares::take(std::size_t most) {
  const auto turn =
      std::ranges::find_if(turns_, [this](const Share* share) { return may_take(*share); });
  if (turn == turns_.end()) return std::nullopt;
  Share& share = **turn;
  Hold hold{.share = &share, .slow = is_slow(share), .lanes = {}};
  // Several at once save trips through the Lanes' lock, where no other share is kept waiting and no
  // worker idle.
  const std::size_t part = (share.arrived.size() + share.others.size() + workers_ - 1) / workers_;
  const bool alone = turns_.size() == 1;
  const std::size_t count = hold.slow || !alone ? 1 : std::min({part, most, max_taken});
  // Behind the other shares for its next turn.
  std::rotate(turn, turn + 1, turns_.end());
  while (hold.lanes.size() < count) {
    const bool others_first =
        share.arrived.empty() ||
        (!share.others.empty() &&
         share.others.front()->second.ready_since < share.arrived.front()->second.ready_since);
    take_lane(share, others_first ? share.others : share.arrived, hold);
  }
  ++share.workers;
  if (hold.slow) ++slow_workers_;
  return hold;
}

bool Shares::is_crowding(const Share& share, std::size_t limit) const {
  return is_slow(share) && share.records * 2 * active_ > limit;
}

bool Shares::may_take_crowding(std::size_t limit) const {
  return std::ranges::any_of(turns_, [&](const Share* share) {
    return !share->arrived.empty() && is_crowding(*share, limit);
  });
}

std::optional<Shares::Hold> Shares::take_crowding(std::size_t limit) {
  const auto crowding = std::ranges::find_if(turns_, [&](const Share* share) {
    return !share->arrived.empty() && is_crowding(*share, limit);
  });
  if (crowding == turns_.end()) return std::nullopt;
  Share& share = **crowding;
  Hold hold{.share = &share, .slow = false, .spill = true, .lanes = {}};
  while (hold.lanes.size() < max_taken && !share.arrived.empty())
    take_lane(share, share.arrived, hold);
  ++share.workers;
  return hold;
}

void Shares::give_back(const Hold& hold, Clock::duration longest) {
  --hold.share->workers;
  if (hold.slow) --slow_workers_;
  if (longest <= slow_run) return;
  hold.share->slow_until = std::max(hold.share->slow_until, now_() + longest * slow_factor);
}

}  // namespace conversed::queue
