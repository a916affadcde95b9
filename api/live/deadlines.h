#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace conversed::api {

// Calls functions when their time has come, from one thread that sleeps until the next is due.
// Thread-safe. A function is called outside the lock, must not block, and may call back in here.
class Deadlines {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Token = std::pair<TimePoint, std::uint64_t>;

  Deadlines();
  ~Deadlines();
  Deadlines(const Deadlines&) = delete;
  Deadlines& operator=(const Deadlines&) = delete;

  // The function is called once, at or soon after `when`, unless it is cancelled or stopped before.
  Token add(TimePoint when, std::function<void()> function);

  // Does nothing when the function was called or is being called: its owner has to bear that.
  void cancel(const Token& token);

  // Drops what is not due yet and joins the thread. Tolerates being called twice.
  void stop();

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<Token, std::function<void()>> pending_;  // ordered by time
  std::uint64_t last_number_ = 0;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace conversed::api
