#include "queue/lanes.h"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "queue/lane.h"
#include "queue/progress.h"
#include "queue/shares.h"
#include "store/model/keyed_hash.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/thread_name.h"

namespace conversed::queue {
namespace {

// Set on a worker while it is in its last run: what becomes ready now, it takes itself next.
thread_local const void* finishing_worker_of = nullptr;

}  // namespace

class Lanes::Impl {
 public:
  Impl(Lanes& self, LanesSettings settings, Handler handler)
      : self_(self),
        settings_(std::move(settings)),
        handler_(std::move(handler)),
        shares_(settings_.workers, settings_.share_of != nullptr, settings_.now) {
    const std::size_t threads = std::max<std::size_t>(settings_.workers, 1);
    for (std::size_t at = 0; at < threads; ++at) {
      workers_.emplace_back([this, at] {
        const std::string name = "worker " + std::to_string(at + 1);
        model::name_this_thread(name);
        work(model::heartbeat_of(settings_.heartbeats, name));
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
      LaneNode& lane = lane_of(record.record.key);
      const bool is_full = in_flight_ - parked_ >= settings_.in_flight_limit;
      if (settings_.parked_limit > 0 && (is_full || !lane.second.parked.empty())) {
        lane.second.parked.push_back(record.position);
        ++parked_;
      } else {
        lane.second.waiting.push_back(std::move(record));
      }
      ++in_flight_;
      make_ready(lane);
    }
    wake_workers();
  }

  void touch(const std::string& key) {
    const std::lock_guard lock(mutex_);
    mark_touched(key);
    wake_workers();
  }

  std::size_t room() const {
    const std::lock_guard lock(mutex_);
    return in_flight_ < most_ ? most_ - in_flight_ : 0;
  }

  std::size_t in_flight() const {
    const std::lock_guard lock(mutex_);
    return in_flight_;
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

  void assign(std::span<const PartitionRange> partitions, const std::vector<std::string>& touched) {
    const std::lock_guard lock(mutex_);
    for (const auto& range : partitions) {
      progress_.erase(range.partition);
      progress_.try_emplace(range.partition, range.committed, ++generation_);
    }
    for (const auto& key : touched) mark_touched(key);
    wake_workers();
  }

  Revoked revoke(std::span<const std::int32_t> partitions, std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    leaving_ = partitions;
    const auto lost = [&](std::int32_t partition) {
      return std::ranges::find(partitions, partition) != partitions.end();
    };
    for (auto& [key, lane] : lanes_) {
      in_flight_ -= std::erase_if(
          lane.waiting, [&](const LogRecord& record) { return lost(record.position.partition); });
      const std::size_t parked =
          lane.parked.erase_if([&](const Position& position) { return lost(position.partition); });
      parked_ -= parked;
      in_flight_ -= parked;
      if (is_lost(key)) lane.touched = false;
    }
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
      quiet_.notify_all();
      return;
    }
    if (is_lost(node.first)) {
      // What is left of it is for whoever has its partition next.
      lane.touched = false;
      next = Next::idle;
    }
    for (const auto& record : lane.in_hand) {
      if (is_tracked(record)) progress_.find(record.partition)->second.finish(record.offset);
    }
    in_flight_ -= lane.in_hand.size();
    if (next == Next::again) lane.touched = true;
    let_go(node);
    if (finishing_worker_of == this) {
      finishing_worker_of = nullptr;
      if (shares_.ready() > 1) wake_workers();
    } else {
      wake_workers();
    }
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
    shares_.clear();
    in_flight_ = in_hand_;
    parked_ = 0;
    for (auto node = lanes_.begin(); node != lanes_.end();) {
      node->second.waiting.clear();
      node->second.parked = {};
      if (node->second.state == Lane::State::in_hand) {
        ++node;
      } else {
        shares_.leave(*node->second.share);
        node = lanes_.erase(node);
      }
    }
    room_.notify_all();
  }

  void mark_touched(const std::string& key) {
    if (stopping_ || is_lost(key)) return;
    LaneNode& lane = lane_of(key);
    lane.second.touched = true;
    make_ready(lane);
  }

  // Whether the key's partition is known not to be read here, or about to be given up.
  [[nodiscard]] bool is_lost(std::string_view key) const {
    if (settings_.partitions == 0) return false;
    const auto partition = partition_of(key, settings_.partitions);
    return !progress_.contains(partition) ||
           std::ranges::find(leaving_, partition) != leaving_.end();
  }

  LaneNode& lane_of(const std::string& key) {
    const auto [node, fresh] = lanes_.try_emplace(key);
    if (fresh) {
      node->second.share = &shares_.join(settings_.share_of ? settings_.share_of(key) : "");
    }
    return *node;
  }

  // Whether its partition is still assigned as it was when the record was taken in.
  [[nodiscard]] bool is_tracked(const InHand& record) const {
    const auto progress = progress_.find(record.partition);
    return progress != progress_.end() && progress->second.generation() == record.generation;
  }

  // The lane's run is in hand no more.
  void let_go(LaneNode& node) {
    Lane& lane = node.second;
    in_hand_ -= lane.in_hand.size();
    lane.in_hand.clear();
    lane.state = Lane::State::idle;
    --runs_in_hand_;
    if (stopping_ || lane.has_nothing_to_do()) {
      erase(node);
    } else {
      make_ready(node);
    }
    wake_room();
    quiet_.notify_all();
  }

  void erase(const LaneNode& node) {
    shares_.leave(*node.second.share);
    lanes_.erase(lanes_.find(node.first));
  }

  void make_ready(LaneNode& node) {
    if (node.second.state != Lane::State::idle) return;
    node.second.state = Lane::State::ready;
    shares_.push(node);
  }

  void wake_workers() {
    if (idle_workers_ == 0 || !may_take()) return;
    if (shares_.ready() == 1) {
      work_.notify_one();
    } else {
      work_.notify_all();
    }
  }

  [[nodiscard]] bool roomy() const {
    const std::size_t free = std::max<std::size_t>(settings_.in_flight_limit / 4, 1);
    return in_flight_ + free <= most_;
  }

  // Parked records come into memory with their run. So the records in hand have a bound of their
  // own, beyond what the workers can have at once.
  [[nodiscard]] bool may_take() const { return in_hand_ < most_in_hand_ && shares_.may_take(); }

  void wake_room() {
    if (waiting_for_room_ && roomy()) room_.notify_all();
  }

  // What one worker has taken at once: fewer trips through the lock than run by run.
  struct Taken {
    struct One {
      Run run;
      LaneNode* lane;
      std::vector<Position> parked;  // the run's records, which are still to be read
    };
    std::vector<One> runs;
    std::optional<Shares::Hold> hold;
    std::chrono::steady_clock::duration longest{};
  };

  void work(model::Heartbeat heartbeat) {
    Taken taken;
    while (take(taken, heartbeat)) {
      auto begun = shares_.now();
      for (std::size_t at = 0; at < taken.runs.size(); ++at) {
        heartbeat.beat();
        Taken::One& one = taken.runs[at];
        if (!one.parked.empty()) {
          const bool was_read = read(one);
          begun = shares_.now();  // a slow disk makes no share slow
          if (!was_read) continue;
        }
        one.run.heartbeat = &heartbeat;
        finishing_worker_of = at + 1 == taken.runs.size() ? this : nullptr;
        handler_(std::move(one.run), Finish(&self_, one.lane));
        const auto ended = shares_.now();
        taken.longest = std::max(taken.longest, ended - std::exchange(begun, ended));
      }
      finishing_worker_of = nullptr;
    }
  }

  // Gives back what was taken before, waits for runs and takes some; false when it is all over.
  bool take(Taken& taken, model::Heartbeat& heartbeat) {
    model::fault_point("worker.loop");
    std::unique_lock lock(mutex_);
    if (taken.hold) shares_.give_back(*taken.hold, taken.longest);
    taken = {};
    while (taken.runs.empty()) {
      while (!may_take() && !ended_) {
        heartbeat.beat();
        ++idle_workers_;
        work_.wait_for(lock, model::beat_interval);
        --idle_workers_;
      }
      if (ended_) return false;
      taken.hold = shares_.take(Shares::max_taken);
      if (!taken.hold) continue;
      for (LaneNode* node : taken.hold->lanes) {
        if (auto one = next_run(*node)) taken.runs.push_back(std::move(*one));
      }
      if (taken.runs.empty()) shares_.give_back(*std::exchange(taken.hold, std::nullopt), {});
    }
    wake_workers();  // what the share of the last run had to leave may find an idle one
    return true;
  }

  // The lane's next run, now in hand. None when a revocation has left it nothing to do.
  std::optional<Taken::One> next_run(LaneNode& node) {
    Lane& lane = node.second;
    if (lane.has_nothing_to_do()) {
      erase(node);
      return std::nullopt;
    }
    Taken::One one{.run = {}, .lane = &node, .parked = {}};
    one.run.key = node.first;
    if (lane.waiting.empty()) {
      one.parked = lane.parked.take(settings_.max_run);
      parked_ -= one.parked.size();
    } else if (lane.waiting.size() <= settings_.max_run) {
      one.run.records.swap(lane.waiting);
    } else {
      const auto end = lane.waiting.begin() + static_cast<std::ptrdiff_t>(settings_.max_run);
      one.run.records.assign(std::move_iterator(lane.waiting.begin()), std::move_iterator(end));
      lane.waiting.erase(lane.waiting.begin(), end);
    }
    for (const auto& record : one.run.records) take_in_hand(lane, record.position);
    for (const auto& position : one.parked) take_in_hand(lane, position);
    in_hand_ += lane.in_hand.size();
    lane.touched = false;
    lane.state = Lane::State::in_hand;
    ++runs_in_hand_;
    return one;
  }

  void take_in_hand(Lane& lane, const Position& position) {
    const auto progress = progress_.find(position.partition);
    const std::uint64_t generation =
        progress == progress_.end() ? 0 : progress->second.generation();
    lane.in_hand.push_back({position.partition, generation, position.offset});
  }

  // Reads the records of a run that were parked. False: that failed, and the run is put off.
  bool read(Taken::One& one) {
    auto records = settings_.read(one.parked);
    if (!records) {
      put_off(*one.lane, one.parked);
      return false;
    }
    one.run.records = std::move(*records);
    return true;
  }

  // Parks the run's records again, in front of all others of their lane. Those of a partition that
  // is gone, or about to go, are dropped: its next owner reads them.
  void put_off(LaneNode& node, std::span<const Position> run) {
    std::unique_lock lock(mutex_);
    Lane& lane = node.second;
    std::vector<Position> parked;
    for (std::size_t at = 0; at < run.size(); ++at) {
      const bool is_leaving = std::ranges::find(leaving_, run[at].partition) != leaving_.end();
      if (!stopping_ && !is_leaving && is_tracked(lane.in_hand[at])) parked.push_back(run[at]);
    }
    in_flight_ -= run.size() - parked.size();
    // What came meanwhile stays behind them.
    for (const auto& record : lane.waiting) parked.push_back(record.position);
    lane.waiting.clear();
    parked_ += parked.size();
    lane.parked.put_back(parked);
    let_go(node);
    room_.wait_for(lock, settings_.retry_interval, [this] { return stopping_; });
  }

  Lanes& self_;
  const LanesSettings settings_;
  const std::size_t most_ = settings_.in_flight_limit + settings_.parked_limit;  // in flight
  const std::size_t most_in_hand_ = std::min(
      settings_.in_hand_limit,
      settings_.in_flight_limit + settings_.workers * Shares::max_taken * settings_.max_run);
  const Handler handler_;

  mutable std::mutex mutex_;  // guards all below but the threads
  std::condition_variable work_;
  std::condition_variable room_;
  std::condition_variable quiet_;
  std::unordered_map<std::string, Lane, model::KeyedHash, std::equal_to<>>
      lanes_;                                  // only those that have something to do
  Shares shares_;                              // of ready lanes
  std::map<std::int32_t, Progress> progress_;  // by partition
  std::uint64_t generation_ = 0;
  std::size_t in_flight_ = 0;  // records taken in and not finished
  std::size_t parked_ = 0;     // of these
  std::size_t in_hand_ = 0;    // of these
  std::size_t runs_in_hand_ = 0;
  std::size_t idle_workers_ = 0;
  std::span<const std::int32_t> leaving_;  // of the `revoke` that goes on
  bool waiting_for_room_ = false;
  bool interrupted_ = false;
  bool stopping_ = false;
  bool ended_ = false;

  std::vector<std::jthread> workers_;  // last: joined before the rest is destroyed
};

Lanes::Lanes(LanesSettings settings, Handler handler)
    : impl_(std::make_unique<Impl>(*this, std::move(settings), std::move(handler))) {}
Lanes::~Lanes() = default;

void Lanes::offer(std::vector<LogRecord> records) {
  impl_->offer(std::move(records));
}
void Lanes::touch(const std::string& key) {
  impl_->touch(key);
}
std::size_t Lanes::room() const {
  return impl_->room();
}
std::size_t Lanes::in_flight() const {
  return impl_->in_flight();
}
bool Lanes::wait_for_room(std::chrono::milliseconds at_most) {
  return impl_->wait_for_room(at_most);
}
void Lanes::interrupt() {
  impl_->interrupt();
}
void Lanes::assign(std::span<const PartitionRange> partitions,
                   const std::vector<std::string>& touched) {
  impl_->assign(partitions, touched);
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
