#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

namespace conversed::daemon {

// Passes letters from any thread to the one thread of a Service, which takes all letters at once.
// Callbacks may hold it longer than its Service exists (shared_ptr). Once closed, it drops all
// letters. Thread-safe.
//
// `Letters` is default constructible. The Service bounds its size.
template <typename Letters>
class Mailbox {
 public:
  // Calls `write(Letters&)` under the lock, so `write` must only move letters in.
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

  // For a Service that does not wait in `take`; call it before its thread starts. `waker` ends the
  // Service's wait. It is called under the lock, so it must not block, and not after `close`.
  void wake_by(std::function<void()> waker) { waker_ = std::move(waker); }

  // For that Service's thread, before it waits: whether there are letters. If not, the next `put`
  // calls `waker`.
  [[nodiscard]] bool ready() {
    const std::lock_guard lock(mutex_);
    asleep_ = !full_;
    return full_;
  }

  // Ends the current `take`, else the next one.
  void wake() {
    put([](Letters&) {});
  }

  // For the Service's thread: waits for letters, at most until `until`, and takes them. With a
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

  // For the Service's thread: sets whether it has nothing to do. The next `put` resets it.
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
  bool full_ = false;  // there are letters since the last `take`
  bool asleep_ = false;
  bool closed_ = false;
  bool quiet_ = false;
  std::function<void()> waker_;
};

}  // namespace conversed::daemon
