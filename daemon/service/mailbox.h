#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

namespace conversed::daemon {

// Passes letters from any thread to the one thread of a Service, which takes all of them at once. A
// shared_ptr to it may outlive its Service in callbacks. Once closed it drops all letters.
// Thread-safe.
//
// `Letters` is default constructible. Its Service bounds its size.
template <typename Letters>
class Mailbox {
 public:
  // Calls `write(Letters&)` under the lock, so it must only move things in.
  template <typename Write>
  void put(Write&& write) {
    bool notify = false;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      write(letters_);
      full_ = true;
      quiet_ = false;
      notify = std::exchange(asleep_, false);
      if (notify && waker_) return waker_();
    }
    if (notify) arrived_.notify_one();
  }

  // For a Service that waits elsewhere than in `take`, before its thread starts. `waker` ends that
  // wait. It is called under the lock and not after `close`, so it must not block.
  void wake_by(std::function<void()> waker) { waker_ = std::move(waker); }

  // For that Service's thread, before it waits: whether there is something to take. If not, the
  // next `put` calls `waker`.
  [[nodiscard]] bool ready() {
    const std::lock_guard lock(mutex_);
    asleep_ = !full_;
    return full_;
  }

  // Ends the current `take`, else the next one.
  void wake() {
    put([](Letters&) {});
  }

  // For the Service's thread: waits until there is something, or `until`, and takes it. With a
  // `waker` it does not wait.
  [[nodiscard]] Letters take(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    if (!full_ && !waker_) {
      asleep_ = true;
      arrived_.wait_until(lock, until, [this] { return full_; });
    }
    asleep_ = false;
    full_ = false;
    return std::exchange(letters_, {});
  }

  // For the Service's thread: whether it has nothing to do now. Stays true until the next `put`.
  void set_quiet(bool quiet) {
    const std::lock_guard lock(mutex_);
    quiet_ = quiet && !full_;
  }
  [[nodiscard]] bool quiet() const {
    const std::lock_guard lock(mutex_);
    return quiet_;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    letters_ = {};
    full_ = false;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  Letters letters_;
  bool full_ = false;  // something was put since the last `take`
  bool asleep_ = false;
  bool closed_ = false;
  bool quiet_ = false;
  std::function<void()> waker_;
};

}  // namespace conversed::daemon
