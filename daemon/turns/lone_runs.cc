#include "daemon/turns/lone_runs.h"

#include <utility>

namespace conversed::daemon {

void LoneRuns::enter(model::Heartbeat* heartbeat) {
  std::unique_lock lock(mutex_);
  while (!stopped_ && (alone_ || !waiting_.empty())) {
    if (heartbeat != nullptr) heartbeat->beat();
    changed_.wait_for(lock, model::beat_interval);
  }
  ++in_hand_;
}

bool LoneRuns::try_enter() {
  const std::lock_guard lock(mutex_);
  if (!stopped_ && (alone_ || !waiting_.empty())) return false;
  ++in_hand_;
  return true;
}

void LoneRuns::end(std::function<void()> then) {
  std::function<void()> ready;
  {
    const std::lock_guard lock(mutex_);
    --in_hand_;
    alone_ = false;
    if (then && !stopped_) waiting_.push_back(std::move(then));
    ready = next();
  }
  if (ready) ready();
}

void LoneRuns::stop() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(waiting_);
  }
  changed_.notify_all();
}

std::function<void()> LoneRuns::next() {
  if (in_hand_ > 0) return {};
  if (waiting_.empty()) {
    changed_.notify_all();
    return {};
  }
  auto run = std::move(waiting_.front());
  waiting_.pop_front();
  ++in_hand_;
  alone_ = true;
  return run;
}

}  // namespace conversed::daemon
