#include "api/live/deadlines.h"

#include <utility>

#include "store/runtime/thread_name.h"

namespace conversed::api {

Deadlines::Deadlines() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

Deadlines::~Deadlines() {
  stop();
}

Deadlines::Token Deadlines::add(TimePoint when, std::function<void()> function) {
  bool first = false;
  Token token;
  {
    const std::lock_guard lock(mutex_);
    token = {when, ++last_number_};
    const auto [place, inserted] = pending_.emplace(token, std::move(function));
    first = place == pending_.begin();
  }
  // Only a new earliest time changes how long the thread may sleep.
  if (first) changed_.notify_one();
  return token;
}

void Deadlines::cancel(const Token& token) {
  std::function<void()> dropped;  // destroyed outside the lock: it may own anything
  const std::lock_guard lock(mutex_);
  if (const auto place = pending_.find(token); place != pending_.end()) {
    dropped = std::move(place->second);
    pending_.erase(place);
  }
}

void Deadlines::stop() {
  thread_.request_stop();
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
  std::map<Token, std::function<void()>> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(pending_);
}

void Deadlines::run(const std::stop_token& stop) {
  model::name_this_thread("deadlines");
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (pending_.empty()) {
      changed_.wait(lock, stop, [this] { return !pending_.empty(); });
      continue;
    }
    const auto first = pending_.begin()->first;
    if (first.first > std::chrono::steady_clock::now()) {
      // Wakes early when something earlier arrives or the first one is cancelled.
      changed_.wait_until(lock, stop, first.first, [this, &first] {
        return pending_.empty() || pending_.begin()->first < first;
      });
      continue;
    }
    auto function = std::move(pending_.begin()->second);
    pending_.erase(pending_.begin());
    lock.unlock();
    function();
    function = nullptr;
    lock.lock();
  }
}

}  // namespace conversed::api
