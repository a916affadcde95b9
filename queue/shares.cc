#include "queue/shares.h"

#include <algorithm>
#include <utility>

namespace conversed::queue {
namespace {

// The number of kept shares without lanes. Above it, quick ones are removed.
constexpr std::size_t max_idle = 1'000;

}  // namespace

Shares::Shares(std::size_t workers, bool fair, Now now)
    : workers_(std::max<std::size_t>(workers, 1)),
      most_workers_(fair && workers_ > 1 ? workers_ - 1 : workers_),
      now_(std::move(now)) {}

Share& Shares::join(const std::string& name) {
  if (shares_.size() > max_idle && !shares_.contains(name)) forget_idle();
  Share& share = shares_[name];
  ++share.lanes;
  return share;
}

void Shares::leave(Share& share) {
  --share.lanes;
}

std::size_t Shares::records_of(std::string_view name) const {
  const auto share = shares_.find(name);
  return share == shares_.end() ? 0 : share->second.records;
}

void Shares::forget_idle() {
  std::erase_if(shares_, [this](const Named::value_type& named) {
    const Share& share = named.second;
    return share.lanes == 0 && share.workers == 0 && !is_slow(share);
  });
}

void Shares::push(LaneNode& lane) {
  Share& share = *lane.second.share;
  if (share.ready.empty()) turns_.push_back(&share);
  share.ready.push_back(&lane);
  ++ready_;
}

void Shares::clear() {
  for (Share* share : turns_) share->ready.clear();
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

std::optional<Shares::Hold> Shares::take(std::size_t most) {
  const auto turn =
      std::ranges::find_if(turns_, [this](const Share* share) { return may_take(*share); });
  if (turn == turns_.end()) return std::nullopt;
  Share& share = **turn;
  turns_.erase(turn);
  Hold hold{.share = &share, .slow = is_slow(share), .lanes = {}};
  // Several lanes at once need the Lanes' lock less often. This must neither keep another share
  // waiting nor leave a worker idle.
  const std::size_t part = (share.ready.size() + workers_ - 1) / workers_;
  const bool alone = turns_.empty();
  const std::size_t count = hold.slow || !alone ? 1 : std::min({part, most, max_taken});
  hold.lanes.assign(share.ready.begin(), share.ready.begin() + static_cast<std::ptrdiff_t>(count));
  share.ready.erase(share.ready.begin(), share.ready.begin() + static_cast<std::ptrdiff_t>(count));
  ready_ -= count;
  if (!share.ready.empty()) turns_.push_back(&share);
  ++share.workers;
  if (hold.slow) ++slow_workers_;
  return hold;
}

void Shares::give_back(const Hold& hold, Clock::duration longest) {
  --hold.share->workers;
  if (hold.slow) --slow_workers_;
  if (longest <= slow_run) return;
  hold.share->slow_until = std::max(hold.share->slow_until, now_() + longest * slow_factor);
}

}  // namespace conversed::queue
