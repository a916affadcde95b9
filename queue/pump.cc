#include "queue/pump.h"

#include <algorithm>
#include <utility>

#include "store/runtime/thread_name.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

// Without records in flight there is no position to commit, so the poll may wait longer.
constexpr std::chrono::milliseconds idle_poll = 1'000ms;

}  // namespace

Result<std::unique_ptr<Pump>> Pump::start(PumpSettings settings, Log& log, Lanes& lanes) {
  std::unique_ptr<Pump> pump(new Pump(std::move(settings), lanes));
  auto consumer = log.subscribe(*pump);
  if (!consumer) return model::fail(consumer.error());
  pump->consumer_ = std::move(*consumer);
  pump->consumer_->slow_down_for(lanes);
  pump->thread_ = std::jthread([raw = pump.get()] { raw->run(); });
  return pump;
}

Pump::Pump(PumpSettings settings, Lanes& lanes) : settings_(std::move(settings)), lanes_(lanes) {}

Pump::~Pump() {
  if (consumer_) stop(1'000ms);
}

void Pump::set_held(bool on) {
  const std::lock_guard lock(mutex_);
  held_ = on;
  changed_.notify_all();
  if (!stopping_) consumer_->wake();
}

void Pump::set_aside(std::vector<std::int32_t> partitions) {
  const std::lock_guard lock(mutex_);
  set_aside_ = std::move(partitions);
  set_aside_at_ = {};
  changed_.notify_all();
  lanes_.interrupt();
  if (!stopping_) consumer_->wake();
}

bool Pump::stop(std::chrono::milliseconds deadline) {
  std::call_once(stopped_, [this, deadline] {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    lanes_.interrupt();
    consumer_->wake();
    thread_.join();
    lanes_.stop(deadline);
    commit();
    consumer_.reset();
  });
  return lanes_.stop(0ms);
}

Result<void> Pump::on_assigned(std::span<const PartitionRange> partitions) {
  std::vector<std::string> touched;
  if (settings_.owner != nullptr) {
    auto taken = settings_.owner->take_up(partitions);
    if (!taken) return model::fail(taken.error());
    touched = std::move(*taken);
  }
  lanes_.assign(partitions, touched);
  return {};
}

void Pump::on_revoked(std::span<const std::int32_t> partitions) {
  const auto revoked = lanes_.revoke(partitions, settings_.revoke_wait);
  if (!revoked.finished.empty()) {
    // If it fails, the next owner gets these records again; each session's position drops them.
    auto committed = consumer_->commit(revoked.finished);
    if (!committed) report(committed.error());
  }
  if (settings_.owner != nullptr) settings_.owner->given_up(partitions, revoked.complete);
}

void Pump::run() {
  model::name_this_thread("consumer");
  heartbeat_ = model::heartbeat_of(settings_.heartbeats, "consumer");
  loop();
  heartbeat_ = {};
}

void Pump::loop() {
  SteadyTime commit_at = std::chrono::steady_clock::now() + settings_.commit_interval;
  for (;;) {
    heartbeat_.beat();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now >= commit_at) {
      commit();
      commit_at = now + settings_.commit_interval;
    }
    if (!move(commit_at)) {
      wait(settings_.retry_interval, [this] { return stopping_ || has_set_aside(); });
    }
  }
}

bool Pump::move(SteadyTime commit_at) {
  const auto left = std::max(
      std::chrono::ceil<std::chrono::milliseconds>(commit_at - std::chrono::steady_clock::now()),
      0ms);
  const bool is_held = held();
  const bool takes_none = is_held || lanes_.room() == 0;
  if (is_held) {
    wait(left, [this] { return stopping_ || !held_ || has_set_aside(); });
  } else if (takes_none) {
    lanes_.wait_for_room(left);
  }
  const bool is_settled = apply_set_aside();
  if (takes_none) return took(consumer_->poll(0, 0ms));
  const std::size_t max = std::min(settings_.max_poll, lanes_.room());
  const bool idle = is_settled && lanes_.in_flight() == 0 && all_committed_;
  return took(consumer_->poll(max, idle ? idle_poll : left));
}

bool Pump::apply_set_aside() {
  std::optional<std::vector<std::int32_t>> wanted;
  {
    const std::lock_guard lock(mutex_);
    if (!set_aside_) return true;
    if (!has_set_aside()) return false;
    wanted = std::exchange(set_aside_, std::nullopt);
  }
  auto done = consumer_->set_aside(*wanted);
  if (done) return true;
  report(done.error());
  const std::lock_guard lock(mutex_);
  if (!set_aside_) {  // else there is a newer set
    set_aside_ = std::move(wanted);
    set_aside_at_ = std::chrono::steady_clock::now() + settings_.retry_interval;
  }
  return false;
}

bool Pump::has_set_aside() const {
  return set_aside_ && std::chrono::steady_clock::now() >= set_aside_at_;
}

bool Pump::took(Result<std::vector<LogRecord>> records) {
  if (!records) {
    report(records.error());
    if (records.error().code == Errc::conflict && settings_.broken) {
      settings_.broken(records.error());
    }
    return false;
  }
  if (records->empty()) return true;
  all_committed_ = false;
  lanes_.offer(std::move(*records));
  return true;
}

void Pump::commit() {
  const bool nothing_in_flight = lanes_.in_flight() == 0;
  const auto finished = lanes_.finished();
  if (!finished.empty()) {
    if (auto committed = consumer_->commit(finished); !committed) {
      lanes_.forget_reported();
      return report(committed.error());
    }
  }
  all_committed_ = nothing_in_flight;
}

void Pump::report(const Error& error) {
  if (settings_.report) settings_.report(error);
}

bool Pump::held() {
  const std::lock_guard lock(mutex_);
  return held_;
}

template <typename Until>
void Pump::wait(std::chrono::milliseconds at_most, Until until) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, until);
}

}  // namespace conversed::queue
