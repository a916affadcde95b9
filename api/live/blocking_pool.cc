#include "api/live/blocking_pool.h"

#include <utility>

#include "store/runtime/thread_name.h"

namespace conversed::api {

BlockingPool::BlockingPool(const Limits& limits) : limits_(limits) {
  threads_.reserve(limits.threads);
  for (std::size_t i = 0; i < limits.threads; ++i) threads_.emplace_back([this] { run(); });
}

BlockingPool::~BlockingPool() {
  stop();
}

bool BlockingPool::post(std::string_view name, Line line, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    Waiting& waiting = lines_[static_cast<std::size_t>(line)];
    if (stopping_ || waiting.count >= limits_.waiting) return false;
    auto queued = waiting.by_name.find(name);
    if (queued == waiting.by_name.end()) {
      queued = waiting.by_name.try_emplace(std::string(name)).first;
      waiting.order.emplace_back(name);
    } else if (queued->second.size() >= limits_.waiting_of_one) {
      return false;
    }
    queued->second.push_back(std::move(work));
    ++waiting.count;
  }
  changed_.notify_one();
  return true;
}

void BlockingPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::jthread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

BlockingPool::Work BlockingPool::take_next() {
  if (lines_[turn_].count == 0) turn_ = 1 - turn_;
  Waiting& line = lines_[turn_];
  turn_ = 1 - turn_;
  std::string name = std::move(line.order.front());
  line.order.pop_front();
  const auto next = line.by_name.find(name);
  Work work = std::move(next->second.front());
  next->second.pop_front();
  --line.count;
  if (next->second.empty()) {
    line.by_name.erase(next);
  } else {
    line.order.push_back(std::move(name));
  }
  return work;
}

void BlockingPool::run() {
  model::name_this_thread("pool");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !idle(); });
    if (idle()) return;
    auto work = take_next();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace conversed::api
