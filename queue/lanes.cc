#include "queue/lanes.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "queue/progress.h"
#include "store/model/fault_points.h"

namespace conversed::queue {
namespace {

// Runs that a worker takes at once when many keys are ready: fewer trips through the lock, and yet
// no run waits long behind others while a worker is idle.
constexpr std::size_t max_taken = 8;

// What of a run its Finish has to account for.
struct InHand {
  std::int32_t partition;
  std::uint64_t generation;
  std::int64_t offset;
};

struct Lane {
  enum class State : std::uint8_t { idle, ready, in_hand };
  State state = State::idle;
  bool touched = false;            // a run is due even without records
  bool unsettled = false;          // recovery waits for a run that says Next::idle
  std::vector<LogRecord> waiting;  // in order
  std::vector<InHand> in_hand;
};
using LaneNode = std::pair<const std::string, Lane>;  // in the map; its address is the lane's name

// Set on a worker while it is in its last run: what becomes ready now, it takes itself next.
thread_local const void* finishing_worker_of = nullptr;

}  // namespace

class Lanes::Impl {
 public:
  Impl(Lanes& self, LanesSettings settings, Handler handler)
      : self_(self), settings_(std::move(settings)), handler_(std::move(handler)) {
    recovering_ = !settings_.one_by_one_below.empty();
    const std::size_t threads = std::max<std::size_t>(settings_.workers, 1);
    for (std::size_t at = 0; at < threads; ++at) {
      workers_.emplace_back([this, at] {
        work(model::heartbeat_of(settings_.heartbeats, "worker " + std::to_string(at + 1)));
      });
    }
  }

  ~Impl() {
    {
      std::unique_lock lock(mutex_);
      begin_stop();
      quiet_.wait(lock, [this] { return runs_in_hand_ == 0; });
      ended_ = true;
    }
    work_.notify_all();
  }

  void offer(std::vector<LogRecord> records) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    for (auto& record : records) {
      const auto progress = progress_.find(record.position.partition);
      if (progress == progress_.end()) continue;
      progress->second.take(record.position);
      ++in_flight_;
      LaneNode& lane = *lanes_.try_emplace(record.record.key).first;
      lane.second.waiting.push_back(std::move(record));
      make_ready(lane);
    }
    if (recovering_) update_recovering();
    wake_workers();
  }

  void touch(std::string key) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    LaneNode& lane = *lanes_.try_emplace(std::move(key)).first;
    lane.second.touched = true;
    if (recovering_) set_unsettled(lane.second, true);
    if (recovering_ && lane.second.state == Lane::State::ready) make_owed(lane);
    make_ready(lane);
    wake_workers();
  }

  std::size_t room() const {
    const std::lock_guard lock(mutex_);
    return in_flight_ < settings_.in_flight_limit ? settings_.in_flight_limit - in_flight_ : 0;
  }

  std::size_t in_flight() const {
    const std::lock_guard lock(mutex_);
    return in_flight_;
  }

  bool recovering() const {
    const std::lock_guard lock(mutex_);
    return recovering_;
  }

  bool wait_for_room(std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    waiting_for_room_ = true;
    room_.wait_for(lock, at_most, [this] { return roomy() || interrupted_; });
    waiting_for_room_ = false;
    interrupted_ = false;
    return roomy();
  }

  void interrupt() {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    room_.notify_all();
  }

  void assign(std::span<const PartitionRange> partitions) {
    const std::lock_guard lock(mutex_);
    for (const auto& range : partitions) {
      progress_.erase(range.partition);
      progress_.try_emplace(range.partition, range.committed, ++generation_);
    }
    assigned_once_ = true;
    update_recovering();
    wake_workers();
  }

  std::vector<Position> revoke(std::span<const std::int32_t> partitions,
                               std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    const auto lost = [&](std::int32_t partition) {
      return std::ranges::find(partitions, partition) != partitions.end();
    };
    std::size_t dropped = 0;
    for (auto& [key, lane] : lanes_) {
      dropped += std::erase_if(
          lane.waiting, [&](const LogRecord& record) { return lost(record.position.partition); });
    }
    in_flight_ -= dropped;
    quiet_.wait_for(lock, at_most, [&] {
      return std::ranges::none_of(lanes_, [&](const LaneNode& lane) {
        return std::ranges::any_of(lane.second.in_hand,
                                   [&](const InHand& record) { return lost(record.partition); });
      });
    });
    std::vector<Position> positions;
    for (const auto partition : partitions) {
      const auto progress = progress_.find(partition);
      if (progress == progress_.end()) continue;
      if (const auto moved = progress->second.moved()) positions.push_back(*moved);
      progress_.erase(progress);
    }
    update_recovering();
    wake_workers();
    wake_room();
    return positions;
  }

  std::vector<Position> finished() {
    const std::lock_guard lock(mutex_);
    std::vector<Position> positions;
    for (auto& [partition, progress] : progress_) {
      if (const auto moved = progress.moved()) positions.push_back(*moved);
    }
    return positions;
  }

  void forget_reported() {
    const std::lock_guard lock(mutex_);
    for (auto& [partition, progress] : progress_) progress.forget_reported();
  }

  void finish(LaneNode& node, Next next) {
    // Notified under the lock: with the last run in hand, the destructor may be waiting.
    const std::lock_guard lock(mutex_);
    Lane& lane = node.second;
    if (next == Next::abandoned) {
      // The lane stays in hand for good, so that no later record overtakes what is unfinished.
      --runs_in_hand_;
      wake_workers();  // in a recovery they waited for this one
      quiet_.notify_all();
      return;
    }
    if (recovering_) settle(lane, next);
    for (const auto& record : lane.in_hand) {
      const auto progress = progress_.find(record.partition);
      if (progress != progress_.end() && progress->second.generation() == record.generation) {
        progress->second.finish(record.offset);
      }
    }
    in_flight_ -= lane.in_hand.size();
    lane.in_hand.clear();
    lane.state = Lane::State::idle;
    --runs_in_hand_;
    if (next == Next::again) lane.touched = true;
    if (stopping_ || (lane.waiting.empty() && !lane.touched)) {
      lanes_.erase(lanes_.find(node.first));
    } else {
      make_ready(node);
    }
    if (recovering_) update_recovering();
    if (finishing_worker_of == this) {
      finishing_worker_of = nullptr;
      if (ready_lanes() > 1) wake_workers();
    } else {
      wake_workers();
    }
    wake_room();
    quiet_.notify_all();
  }

  bool stop(std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    begin_stop();
    return quiet_.wait_for(lock, at_most, [this] { return runs_in_hand_ == 0; });
  }

 private:
  void begin_stop() {
    if (stopping_) return;
    stopping_ = true;
    owed_.clear();
    ready_.clear();
    for (auto node = lanes_.begin(); node != lanes_.end();) {
      in_flight_ -= node->second.waiting.size();
      node->second.waiting.clear();
      node = node->second.state == Lane::State::in_hand ? std::next(node) : lanes_.erase(node);
    }
    room_.notify_all();
  }

  void make_ready(LaneNode& node) {
    if (node.second.state != Lane::State::idle) return;
    node.second.state = Lane::State::ready;
    (recovering_ && owes(node.second) ? owed_ : ready_).push_back(&node);
  }

  // For a lane that was ready before the recovery had to wait for it.
  void make_owed(LaneNode& node) {
    if (std::erase(ready_, &node) > 0) owed_.push_back(&node);
  }

  // Whether the next run of the lane is one that the recovery waits for.
  [[nodiscard]] bool owes(const Lane& lane) const {
    if (lane.unsettled) return true;
    return !lane.waiting.empty() &&
           is_below(lane.waiting.front().position.partition, lane.waiting.front().position.offset);
  }

  [[nodiscard]] bool is_below(std::int32_t partition, std::int64_t offset) const {
    const auto limit = settings_.one_by_one_below.find(partition);
    return limit != settings_.one_by_one_below.end() && offset < limit->second;
  }

  [[nodiscard]] std::size_t ready_lanes() const { return owed_.size() + ready_.size(); }

  LaneNode& pop_ready() {
    auto& from = owed_.empty() ? ready_ : owed_;
    LaneNode& node = *from.front();
    from.pop_front();
    return node;
  }

  [[nodiscard]] bool may_run() const {
    return ready_lanes() > 0 && (!recovering_ || runs_in_hand_ == 0);
  }

  void wake_workers() {
    if (idle_workers_ == 0 || !may_run()) return;
    if (recovering_ || ready_lanes() == 1) {
      work_.notify_one();
    } else {
      work_.notify_all();
    }
  }

  [[nodiscard]] bool roomy() const {
    const std::size_t free = std::max<std::size_t>(settings_.in_flight_limit / 4, 1);
    return in_flight_ + free <= settings_.in_flight_limit;
  }

  void wake_room() {
    if (waiting_for_room_ && roomy()) room_.notify_all();
  }

  void update_recovering() {
    if (recovered_) return;
    const auto& limits = settings_.one_by_one_below;
    recovering_ = unsettled_ > 0 ||
                  (!limits.empty() &&
                   (!assigned_once_ || std::ranges::any_of(limits, [this](const auto& limit) {
                     const auto progress = progress_.find(limit.first);
                     return progress != progress_.end() &&
                            progress->second.lowest_unfinished() < limit.second;
                   })));
  }

  void set_unsettled(Lane& lane, bool unsettled) {
    if (lane.unsettled == unsettled) return;
    lane.unsettled = unsettled;
    unsettled ? ++unsettled_ : --unsettled_;
  }

  // Whether recovery waits for the lane behind the run that has just ended. What goes on behind a
  // newer record is not waited for: under load there would be no end to it.
  void settle(Lane& lane, Next next) {
    const bool old =
        lane.unsettled || std::ranges::any_of(lane.in_hand, [this](const InHand& record) {
          return is_below(record.partition, record.offset);
        });
    set_unsettled(lane, lane.touched || (next == Next::again && old));
  }

  struct Taken {
    Run run;
    LaneNode* lane;
  };

  void work(model::Heartbeat heartbeat) {
    std::vector<Taken> taken;
    while (take(taken, heartbeat)) {
      for (std::size_t at = 0; at < taken.size(); ++at) {
        heartbeat.beat();
        finishing_worker_of = at + 1 == taken.size() ? this : nullptr;
        handler_(std::move(taken[at].run), Finish(&self_, taken[at].lane));
      }
      finishing_worker_of = nullptr;
      taken.clear();
    }
  }

  // Waits for runs and takes some; false when it is all over.
  bool take(std::vector<Taken>& taken, model::Heartbeat& heartbeat) {
    model::fault_point("worker.loop");
    std::unique_lock lock(mutex_);
    while (taken.empty()) {
      while (!may_run() && !ended_) {
        heartbeat.beat();
        ++idle_workers_;
        work_.wait_for(lock, model::beat_interval);
        --idle_workers_;
      }
      if (ended_) return false;
      const std::size_t share = (ready_lanes() + workers_share() - 1) / workers_share();
      const std::size_t count = recovering_ ? 1 : std::min(share, max_taken);
      while (taken.size() < count && ready_lanes() > 0) {
        LaneNode& node = pop_ready();
        if (auto run = next_run(node)) taken.push_back({std::move(*run), &node});
      }
    }
    // Others may be in hand with these: nothing that comes from here on can be told to run alone.
    recovered_ = !recovering_;
    return true;
  }

  [[nodiscard]] std::size_t workers_share() const {
    return std::max<std::size_t>(settings_.workers, 1);
  }

  // The lane's next run, now in hand. None when a revocation has left it nothing to do.
  std::optional<Run> next_run(LaneNode& node) {
    Lane& lane = node.second;
    if (lane.waiting.empty() && !lane.touched) {
      lanes_.erase(lanes_.find(node.first));
      return std::nullopt;
    }
    Run run;
    run.key = node.first;
    std::size_t count = recovering_ ? 1 : settings_.max_run;
    if (!recovering_ && lane.waiting.size() > settings_.lane_limit) {
      run.spill = true;
      count = settings_.spill_limit;
    }
    if (lane.unsettled) {
      // No records: what waits elsewhere comes first, and has an end.
    } else if (lane.waiting.size() <= count) {
      run.records.swap(lane.waiting);
    } else {
      const auto end = lane.waiting.begin() + static_cast<std::ptrdiff_t>(count);
      run.records.assign(std::move_iterator(lane.waiting.begin()), std::move_iterator(end));
      lane.waiting.erase(lane.waiting.begin(), end);
    }
    for (const auto& record : run.records) {
      const auto progress = progress_.find(record.position.partition);
      const std::uint64_t generation =
          progress == progress_.end() ? 0 : progress->second.generation();
      lane.in_hand.push_back({record.position.partition, generation, record.position.offset});
    }
    lane.touched = false;
    lane.state = Lane::State::in_hand;
    ++runs_in_hand_;
    return run;
  }

  Lanes& self_;
  const LanesSettings settings_;
  const Handler handler_;

  mutable std::mutex mutex_;  // guards all below but the threads
  std::condition_variable work_;
  std::condition_variable room_;
  std::condition_variable quiet_;
  std::unordered_map<std::string, Lane> lanes_;  // only those that have something to do
  // Ready lanes, each in one of them, oldest first. In a recovery, `owed_` has those that it waits
  // for, and they go first; else it is empty, but for what a revocation has left nothing to do.
  std::deque<LaneNode*> owed_;
  std::deque<LaneNode*> ready_;
  std::map<std::int32_t, Progress> progress_;  // by partition
  std::uint64_t generation_ = 0;
  std::size_t in_flight_ = 0;
  std::size_t runs_in_hand_ = 0;
  std::size_t idle_workers_ = 0;
  std::size_t unsettled_ = 0;  // lanes
  bool recovering_ = false;
  bool recovered_ = false;  // it was over when a run was handed out, and stays so
  bool assigned_once_ = false;
  bool waiting_for_room_ = false;
  bool interrupted_ = false;
  bool stopping_ = false;
  bool ended_ = false;

  std::vector<std::jthread> workers_;  // last: joined before the rest is destroyed
};

Finish& Finish::operator=(Finish&& other) noexcept {
  if (this == &other) return *this;
  if (lanes_ != nullptr) std::abort();  // would lose the run that this one is for
  lanes_ = std::exchange(other.lanes_, nullptr);
  lane_ = std::exchange(other.lane_, nullptr);
  return *this;
}

Finish::~Finish() {
  if (lanes_ != nullptr) std::abort();  // its key would stand still for ever
}

void Finish::operator()(Next next) {
  Lanes* lanes = std::exchange(lanes_, nullptr);
  if (lanes == nullptr) std::abort();  // finished twice
  lanes->finish(std::exchange(lane_, nullptr), next);
}

Lanes::Lanes(LanesSettings settings, Handler handler)
    : impl_(std::make_unique<Impl>(*this, std::move(settings), std::move(handler))) {}
Lanes::~Lanes() = default;

void Lanes::offer(std::vector<LogRecord> records) {
  impl_->offer(std::move(records));
}
void Lanes::touch(std::string key) {
  impl_->touch(std::move(key));
}
std::size_t Lanes::room() const {
  return impl_->room();
}
std::size_t Lanes::in_flight() const {
  return impl_->in_flight();
}
bool Lanes::recovering() const {
  return impl_->recovering();
}
bool Lanes::wait_for_room(std::chrono::milliseconds at_most) {
  return impl_->wait_for_room(at_most);
}
void Lanes::interrupt() {
  impl_->interrupt();
}
void Lanes::assign(std::span<const PartitionRange> partitions) {
  impl_->assign(partitions);
}
std::vector<Position> Lanes::revoke(std::span<const std::int32_t> partitions,
                                    std::chrono::milliseconds at_most) {
  return impl_->revoke(partitions, at_most);
}
std::vector<Position> Lanes::finished() {
  return impl_->finished();
}
void Lanes::forget_reported() {
  impl_->forget_reported();
}
bool Lanes::stop(std::chrono::milliseconds at_most) {
  return impl_->stop(at_most);
}

void Lanes::finish(void* lane, Next next) {
  impl_->finish(*static_cast<LaneNode*>(lane), next);
}

}  // namespace conversed::queue
