#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace conversed::api {

// Threads for what takes too long for a thread of the HTTP server: password hashes and the
// management operations. Thread-safe. The queue is bounded: its memory is requests with their
// bodies.
class BlockingPool {
 public:
  BlockingPool(std::size_t threads, std::size_t max_waiting);
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // False, and the work is dropped, when the queue is full or the pool stopped. Work must not
  // throw.
  [[nodiscard]] bool post(std::function<void()> work);

  // Runs what waits, then joins; refuses new work at once. Tolerates being called twice.
  void stop();

 private:
  void run();

  const std::size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace conversed::api
