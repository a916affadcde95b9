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

#include "queue/lane.h"
#include "queue/one_by_one.h"
#include "queue/progress.h"
#include "store/model/fault_points.h"

namespace conversed::queue {
namespace {

// Runs that a worker takes at once when many keys are ready: fewer trips through the lock, and yet
// no run waits long behind others while a worker is idle.
constexpr std::size_t max_taken = 8;

// Set on a worker while it is in its last run: what becomes ready now, it takes itself next.
thread_local const void* finishing_worker_of = nullptr;

}  // namespace

class Lanes::Impl {
 public:
  Impl(Lanes& self, LanesSettings settings, Handler handler)
      : self_(self),
        settings_(std::move(settings)),
        handler_(std::move(handler)),
        recovery_(settings_.one_by_one_below) {
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
    if (recovery_.goes_on()) recovery_.update(progress_);
    wake_workers();
  }

  void touch(std::string key) {
    const std::lock_guard lock(mutex_);
    mark_touched(std::move(key));
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
    return recovery_.goes_on();
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

  void assign(std::span<const PartitionRange> partitions, Assignment with) {
    const std::lock_guard lock(mutex_);
    for (const auto& range : partitions) {
      progress_.erase(range.partition);
      progress_.try_emplace(range.partition, range.committed, ++generation_);
    }
    recovery_.assigned();
    recovery_.begin(with.one_by_one_below);
    for (auto& key : with.touched) mark_touched(std::move(key));
    recovery_.update(progress_);
    wake_workers();
  }

  Revoked revoke(std::span<const std::int32_t> partitions, std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    leaving_ = partitions;
    const auto lost = [&](std::int32_t partition) {
      return std::ranges::find(partitions, partition) != partitions.end();
    };
    std::size_t dropped = 0;
    for (auto& [key, lane] : lanes_) {
      dropped += std::erase_if(
          lane.waiting, [&](const LogRecord& record) { return lost(record.position.partition); });
      if (!is_lost(key)) continue;
      lane.touched = false;
      if (lane.state != Lane::State::in_hand) recovery_.set_unsettled(lane.unsettled, false);
    }
    in_flight_ -= dropped;
    Revoked revoked;
    revoked.complete = quiet_.wait_for(lock, at_most, [&] {
      return std::ranges::none_of(lanes_, [&](const LaneNode& lane) {
        return lane.second.state == Lane::State::in_hand &&
               (is_lost(lane.first) ||
                std::ranges::any_of(lane.second.in_hand,
                                    [&](const InHand& record) { return lost(record.partition); }));
      });
    });
    for (const auto partition : partitions) {
      const auto progress = progress_.find(partition);
      if (progress == progress_.end()) continue;
      if (const auto moved = progress->second.moved()) revoked.finished.push_back(*moved);
      progress_.erase(progress);
    }
    leaving_ = {};
    recovery_.forget(partitions);
    recovery_.update(progress_);
    wake_workers();
    wake_room();
    return revoked;
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
    if (is_lost(node.first)) {
      // What is left of it is for whoever has its partition next.
      lane.touched = false;
      next = Next::idle;
    }
    if (recovery_.goes_on()) settle(lane, next);
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
      erase(node);
    } else {
      make_ready(node);
    }
    if (recovery_.goes_on()) recovery_.update(progress_);
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

  void mark_touched(std::string key) {
    if (stopping_ || is_lost(key)) return;
    LaneNode& lane = *lanes_.try_emplace(std::move(key)).first;
    lane.second.touched = true;
    if (recovery_.goes_on()) {
      recovery_.set_unsettled(lane.second.unsettled, true);
      if (lane.second.state == Lane::State::ready) make_owed(lane);
    }
    make_ready(lane);
  }

  // Whether the key's partition is known not to be read here, or about to be given up.
  [[nodiscard]] bool is_lost(std::string_view key) const {
    if (settings_.partitions == 0) return false;
    const auto partition = partition_of(key, settings_.partitions);
    return !progress_.contains(partition) ||
           std::ranges::find(leaving_, partition) != leaving_.end();
  }

  void erase(const LaneNode& node) { lanes_.erase(lanes_.find(node.first)); }

  void make_ready(LaneNode& node) {
    if (node.second.state != Lane::State::idle) return;
    node.second.state = Lane::State::ready;
    (recovery_.goes_on() && owes(node.second) ? owed_ : ready_).push_back(&node);
  }

  // For a lane that was ready before the recovery had to wait for it.
  void make_owed(LaneNode& node) {
    if (std::erase(ready_, &node) > 0) owed_.push_back(&node);
  }

  // Whether the next run of the lane is one that the recovery waits for.
  [[nodiscard]] bool owes(const Lane& lane) const {
    if (lane.unsettled) return true;
    if (lane.waiting.empty()) return false;
    const Position& next = lane.waiting.front().position;
    return recovery_.is_below(next.partition, next.offset);
  }

  [[nodiscard]] std::size_t ready_lanes() const { return owed_.size() + ready_.size(); }

  LaneNode& pop_ready() {
    auto& from = owed_.empty() ? ready_ : owed_;
    LaneNode& node = *from.front();
    from.pop_front();
    return node;
  }

  [[nodiscard]] bool may_run() const {
    return ready_lanes() > 0 && (!recovery_.goes_on() || runs_in_hand_ == 0);
  }

  void wake_workers() {
    if (idle_workers_ == 0 || !may_run()) return;
    if (recovery_.goes_on() || ready_lanes() == 1) {
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

  // Whether recovery waits for the lane behind the run that has just ended. What goes on behind a
  // newer record is not waited for: under load there would be no end to it.
  void settle(Lane& lane, Next next) {
    const bool old =
        lane.unsettled || std::ranges::any_of(lane.in_hand, [this](const InHand& record) {
          return recovery_.is_below(record.partition, record.offset);
        });
    recovery_.set_unsettled(lane.unsettled, lane.touched || (next == Next::again && old));
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
      const std::size_t count = recovery_.goes_on() ? 1 : std::min(share, max_taken);
      while (taken.size() < count && ready_lanes() > 0) {
        LaneNode& node = pop_ready();
        if (auto run = next_run(node)) taken.push_back({std::move(*run), &node});
      }
    }
    recovery_.hand_out();
    return true;
  }

  [[nodiscard]] std::size_t workers_share() const {
    return std::max<std::size_t>(settings_.workers, 1);
  }

  // The lane's next run, now in hand. None when a revocation has left it nothing to do.
  std::optional<Run> next_run(LaneNode& node) {
    Lane& lane = node.second;
    if (lane.waiting.empty() && !lane.touched) {
      erase(node);
      return std::nullopt;
    }
    Run run;
    run.key = node.first;
    std::size_t count = recovery_.goes_on() ? 1 : settings_.max_run;
    if (!recovery_.goes_on() && lane.waiting.size() > settings_.lane_limit) {
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
  OneByOne recovery_;
  std::span<const std::int32_t> leaving_;  // of the `revoke` that goes on
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
void Lanes::assign(std::span<const PartitionRange> partitions, Assignment with) {
  impl_->assign(partitions, std::move(with));
}
Revoked Lanes::revoke(std::span<const std::int32_t> partitions, std::chrono::milliseconds at_most) {
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
