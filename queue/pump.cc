#include "queue/pump.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "store/runtime/thread_name.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;
using SteadyTime = std::chrono::steady_clock::time_point;

// With nothing in flight there is nothing to commit: the poll may wait longer.
constexpr std::chrono::milliseconds idle_poll = 1'000ms;

}  // namespace

class Pump::Impl final : public Listener {
 public:
  Impl(PumpSettings settings, Lanes& lanes) : settings_(std::move(settings)), lanes_(lanes) {}
  ~Impl() override = default;

  Result<void> start(Log& log) {
    auto consumer = log.subscribe(*this);
    if (!consumer) return model::fail(consumer.error());
    consumer_ = std::move(*consumer);
    thread_ = std::jthread([this] { run(); });
    return {};
  }

  void set_held(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
    if (!stopping_) consumer_->wake();
  }

  bool stop(std::chrono::milliseconds deadline) {
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

 private:
  Result<void> on_assigned(std::span<const PartitionRange> partitions) override {
    std::vector<std::string> touched;
    if (settings_.owner != nullptr) {
      auto taken = settings_.owner->take_up(partitions);
      if (!taken) return model::fail(taken.error());
      touched = std::move(*taken);
    }
    lanes_.assign(partitions, touched);
    return {};
  }

  void on_revoked(std::span<const std::int32_t> partitions) override {
    const auto revoked = lanes_.revoke(partitions, settings_.revoke_wait);
    if (!revoked.finished.empty()) {
      // If it fails, the next owner gets these again; each session's own position drops them.
      auto committed = consumer_->commit(revoked.finished);
      if (!committed) report(committed.error());
    }
    if (settings_.owner != nullptr) settings_.owner->given_up(partitions, revoked.complete);
  }

  void on_waiting() override { heartbeat_.beat(); }

  void run() {
    model::name_this_thread("consumer");
    heartbeat_ = model::heartbeat_of(settings_.heartbeats, "consumer");
    loop();
    heartbeat_ = {};
  }

  void loop() {
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
      if (!move(commit_at)) wait(settings_.retry_interval, [this] { return stopping_; });
    }
  }

  // Moves what there is, or waits until `commit_at` at most; false after an error of the log.
  bool move(SteadyTime commit_at) {
    const auto left = std::max(
        std::chrono::ceil<std::chrono::milliseconds>(commit_at - std::chrono::steady_clock::now()),
        0ms);
    if (held() || lanes_.room() == 0) {
      if (held()) {
        wait(left, [this] { return stopping_ || !held_; });
      } else {
        lanes_.wait_for_room(left);
      }
      return took(consumer_->poll(0, 0ms));
    }
    const std::size_t max = std::min(settings_.max_poll, lanes_.room());
    const bool idle = lanes_.in_flight() == 0 && all_committed_;
    return took(consumer_->poll(max, idle ? idle_poll : left));
  }

  bool took(Result<std::vector<LogRecord>> records) {
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

  void commit() {
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

  void report(const Error& error) {
    if (settings_.report) settings_.report(error);
  }

  bool held() {
    const std::lock_guard lock(mutex_);
    return held_;
  }

  template <typename Until>
  void wait(std::chrono::milliseconds at_most, Until until) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, at_most, until);
  }

  const PumpSettings settings_;
  Lanes& lanes_;
  std::unique_ptr<Consumer> consumer_;
  bool all_committed_ = true;  // the thread's own, as is the next one
  model::Heartbeat heartbeat_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool stopping_ = false;
  std::once_flag stopped_;
  std::jthread thread_;
};

Result<std::unique_ptr<Pump>> Pump::start(PumpSettings settings, Log& log, Lanes& lanes) {
  auto impl = std::make_unique<Impl>(std::move(settings), lanes);
  if (auto started = impl->start(log); !started) return model::fail(started.error());
  return std::unique_ptr<Pump>(new Pump(std::move(impl)));
}

Pump::Pump(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pump::~Pump() {
  stop(1'000ms);
}

void Pump::hold() {
  impl_->set_held(true);
}
void Pump::release() {
  impl_->set_held(false);
}
bool Pump::stop(std::chrono::milliseconds deadline) {
  return impl_->stop(deadline);
}

}  // namespace conversed::queue
