#include "queue/lanes.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "store/runtime/fault_points.h"
#include "store/runtime/thread_name.h"

namespace conversed::queue {
namespace {

// Set on a worker during its last run: lanes that become ready are left to this worker.
thread_local const void* finishing_worker_of = nullptr;

}  // namespace

Finish& Finish::operator=(Finish&& other) noexcept {
  if (this == &other) return *this;
  if (lanes_ != nullptr)
    std::abort();  // an assignment would lose the unfinished run of this Finish
  lanes_ = std::exchange(other.lanes_, nullptr);
  lane_ = std::exchange(other.lane_, nullptr);
  return *this;
}

Finish::~Finish() {
  if (lanes_ != nullptr) std::abort();  // its lane would never run again
}

void Finish::operator()(Next next) {
  Lanes* lanes = std::exchange(lanes_, nullptr);
  if (lanes == nullptr) std::abort();  // finished twice
  lanes->finish(*std::exchange(lane_, nullptr), next);
}

Lanes::Lanes(LanesSettings settings, Handler handler)
    : settings_(std::move(settings)),
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

Lanes::~Lanes() {
  {
    std::unique_lock lock(mutex_);
    begin_stop();
    quiet_.wait(lock, [this] { return runs_in_hand_ == 0; });
    ended_ = true;
  }
  work_.notify_all();
}

void Lanes::offer(std::vector<LogRecord> records) {
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
    ++lane.second.share->records;
    make_ready(lane);
  }
  wake_workers();
}

void Lanes::touch(const std::string& key) {
  const std::lock_guard lock(mutex_);
  mark_touched(key);
  wake_workers();
}

std::size_t Lanes::room() const {
  const std::lock_guard lock(mutex_);
  return in_flight_ < most_ ? most_ - in_flight_ : 0;
}

bool Lanes::waits_for_share(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto lane = lanes_.find(key);
  return lane != lanes_.end() && lane->second.state == Lane::State::ready &&
         !shares_.may_take(*lane->second.share);
}

std::size_t Lanes::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

std::size_t Lanes::in_flight_of_share(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  if (const auto lane = lanes_.find(key); lane != lanes_.end()) return lane->second.share->records;
  return shares_.records_of(settings_.share_of ? settings_.share_of(key) : "");
}

bool Lanes::wait_for_room(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  waiting_for_room_ = true;
  room_.wait_for(lock, at_most, [this] { return roomy() || interrupted_; });
  waiting_for_room_ = false;
  interrupted_ = false;
  return roomy();
}

void Lanes::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  room_.notify_all();
}

void Lanes::assign(std::span<const PartitionRange> partitions,
                   const std::vector<std::string>& touched) {
  const std::lock_guard lock(mutex_);
  for (const auto& range : partitions) {
    progress_.erase(range.partition);
    progress_.try_emplace(range.partition, range.committed, ++generation_);
  }
  for (const auto& key : touched) mark_touched(key);
  wake_workers();
}

Revoked Lanes::revoke(std::span<const std::int32_t> partitions, std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  leaving_ = partitions;
  const auto lost = [&](std::int32_t partition) {
    return std::ranges::find(partitions, partition) != partitions.end();
  };
  for (auto& [key, lane] : lanes_) {
    const std::size_t waiting = std::erase_if(
        lane.waiting, [&](const LogRecord& record) { return lost(record.position.partition); });
    const std::size_t parked =
        std::erase_if(lane.parked, [&](const Position& at) { return lost(at.partition); });
    parked_ -= parked;
    drop(lane, waiting + parked);
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
  if (!revoked.complete) give_up_in_hand(partitions);
  leaving_ = {};
  wake_room();
  return revoked;
}

// Runs that do not end, for example because their store is away, must not take the room of others.
void Lanes::give_up_in_hand(std::span<const std::int32_t> partitions) {
  for (auto& [key, lane] : lanes_) {
    const auto lost =
        static_cast<std::size_t>(std::ranges::count_if(lane.in_hand, [&](const InHand& record) {
          return std::ranges::find(partitions, record.partition) != partitions.end();
        }));
    const std::size_t more = lost - std::min(lane.given_up, lost);
    lane.given_up += more;
    drop(lane, more);
    in_hand_ -= more;
  }
}

std::vector<Position> Lanes::finished() {
  const std::lock_guard lock(mutex_);
  std::vector<Position> positions;
  for (auto& [partition, progress] : progress_) {
    if (const auto moved = progress.moved()) positions.push_back(*moved);
  }
  return positions;
}

void Lanes::forget_reported() {
  const std::lock_guard lock(mutex_);
  for (auto& [partition, progress] : progress_) progress.forget_reported();
}

void Lanes::finish(LaneNode& node, Next next) {
  // Notifies under the lock: the destructor may be waiting for this last run in hand.
  const std::lock_guard lock(mutex_);
  Lane& lane = node.second;
  if (next == Next::abandoned) {
    // The lane stays in hand, so that no later record overtakes the unfinished ones.
    --runs_in_hand_;
    quiet_.notify_all();
    return;
  }
  if (is_lost(node.first)) {
    // The partition's next owner runs the rest of the lane.
    lane.touched = false;
    next = Next::idle;
  }
  for (const auto& record : lane.in_hand) {
    if (is_tracked(record)) progress_.find(record.partition)->second.finish(record.offset);
  }
  drop(lane, lane.in_hand.size() - lane.given_up);
  if (next == Next::again) lane.touched = true;
  let_go(node);
  if (finishing_worker_of == this) {
    finishing_worker_of = nullptr;
    if (shares_.ready() > 1) wake_workers();
  } else {
    wake_workers();
  }
}

bool Lanes::stop(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  begin_stop();
  return quiet_.wait_for(lock, at_most, [this] { return runs_in_hand_ == 0; });
}

void Lanes::begin_stop() {
  if (stopping_) return;
  stopping_ = true;
  shares_.clear();
  in_flight_ = in_hand_;
  parked_ = 0;
  for (auto node = lanes_.begin(); node != lanes_.end();) {
    Lane& lane = node->second;
    lane.share->records -= lane.waiting.size() + lane.parked.size();
    lane.waiting.clear();
    lane.parked = {};
    if (lane.state == Lane::State::in_hand) {
      ++node;
    } else {
      shares_.leave(*lane.share);
      node = lanes_.erase(node);
    }
  }
  room_.notify_all();
}

void Lanes::mark_touched(const std::string& key) {
  if (stopping_ || is_lost(key)) return;
  LaneNode& lane = lane_of(key);
  lane.second.touched = true;
  make_ready(lane);
}

bool Lanes::is_lost(std::string_view key) const {
  if (settings_.partitions == 0) return false;
  const auto partition = partition_of(key, settings_.partitions);
  return !progress_.contains(partition) || std::ranges::find(leaving_, partition) != leaving_.end();
}

LaneNode& Lanes::lane_of(const std::string& key) {
  const auto [node, fresh] = lanes_.try_emplace(key);
  if (fresh) {
    node->second.share = &shares_.join(settings_.share_of ? settings_.share_of(key) : "");
  }
  return *node;
}

bool Lanes::is_tracked(const InHand& record) const {
  const auto progress = progress_.find(record.partition);
  return progress != progress_.end() && progress->second.generation() == record.generation;
}

void Lanes::let_go(LaneNode& node) {
  Lane& lane = node.second;
  in_hand_ -= lane.in_hand.size() - std::exchange(lane.given_up, 0);
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

void Lanes::erase(const LaneNode& node) {
  shares_.leave(*node.second.share);
  lanes_.erase(lanes_.find(node.first));
}

void Lanes::make_ready(LaneNode& node) {
  if (node.second.state != Lane::State::idle) return;
  node.second.state = Lane::State::ready;
  shares_.push(node);
}

void Lanes::wake_workers() {
  if (idle_workers_ == 0 || !may_take()) return;
  if (shares_.ready() == 1) {
    work_.notify_one();
  } else {
    work_.notify_all();
  }
}

bool Lanes::roomy() const {
  const std::size_t free = std::max<std::size_t>(settings_.in_flight_limit / 4, 1);
  return in_flight_ + free <= most_;
}

void Lanes::wake_room() {
  if (waiting_for_room_ && roomy()) room_.notify_all();
}

void Lanes::work(model::Heartbeat heartbeat) {
  Taken taken;
  while (take(taken, heartbeat)) {
    auto begun = shares_.now();
    std::vector<std::string_view> keys;
    for (std::size_t at = 0; at < taken.runs.size(); ++at) {
      heartbeat.beat();
      Taken::One& one = taken.runs[at];
      if (!one.parked.empty()) {
        const bool was_read = read(one);
        begun = shares_.now();  // a slow read makes no share slow
        if (!was_read) continue;
      }
      one.run.heartbeat = &heartbeat;
      if (keys.empty()) {
        for (std::size_t next = at; next < taken.runs.size(); ++next) {
          keys.emplace_back(taken.runs[next].lane->first);
        }
        one.run.in_a_row = keys;
      }
      finishing_worker_of = at + 1 == taken.runs.size() ? this : nullptr;
      handler_(std::move(one.run), Finish(this, one.lane));
      const auto ended = shares_.now();
      taken.longest = std::max(taken.longest, ended - std::exchange(begun, ended));
    }
    finishing_worker_of = nullptr;
  }
}

bool Lanes::take(Taken& taken, model::Heartbeat& heartbeat) {
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
  wake_workers();  // an idle worker may take lanes that the last run's share had to leave
  return true;
}

std::optional<Lanes::Taken::One> Lanes::next_run(LaneNode& node) {
  Lane& lane = node.second;
  if (lane.has_nothing_to_do()) {
    erase(node);
    return std::nullopt;
  }
  Taken::One one{.run = {}, .lane = &node, .parked = {}};
  one.run.key = node.first;
  if (lane.waiting.empty()) {
    const auto count = std::min(settings_.max_run, lane.parked.size());
    const auto end = std::next(lane.parked.begin(), static_cast<std::ptrdiff_t>(count));
    one.parked.assign(lane.parked.begin(), end);
    lane.parked.erase(lane.parked.begin(), end);
    parked_ -= count;
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

void Lanes::take_in_hand(Lane& lane, const Position& position) {
  const auto progress = progress_.find(position.partition);
  const std::uint64_t generation = progress == progress_.end() ? 0 : progress->second.generation();
  lane.in_hand.push_back({position.partition, generation, position.offset});
}

bool Lanes::read(Taken::One& one) {
  auto records = settings_.read(one.parked);
  if (!records) {
    put_off(*one.lane, one.parked);
    return false;
  }
  one.run.records = std::move(*records);
  return true;
}

void Lanes::put_off(LaneNode& node, std::span<const Position> run) {
  std::unique_lock lock(mutex_);
  Lane& lane = node.second;
  std::vector<Position> parked;
  for (std::size_t at = 0; at < run.size(); ++at) {
    const bool is_leaving = std::ranges::find(leaving_, run[at].partition) != leaving_.end();
    if (!stopping_ && !is_leaving && is_tracked(lane.in_hand[at])) parked.push_back(run[at]);
  }
  drop(lane, run.size() - parked.size() - lane.given_up);
  // Records that came meanwhile stay behind them.
  for (const auto& record : lane.waiting) parked.push_back(record.position);
  lane.waiting.clear();
  parked_ += parked.size();
  lane.parked.insert(lane.parked.begin(), parked.begin(), parked.end());
  let_go(node);
  room_.wait_for(lock, settings_.retry_interval, [this] { return stopping_; });
}

}  // namespace conversed::queue
