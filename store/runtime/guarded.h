#pragma once

#include <mutex>
#include <utility>

namespace conversed::model {

// A value that is reachable only while its lock is held:
//   guarded.with([](Queue& queue) { queue.push_back(x); });
// Thread-safe. Never call out (callbacks, I/O) inside `with`: collect, leave, then call.
template <typename T>
class Guarded {
 public:
  Guarded() = default;
  explicit Guarded(T value) : value_(std::move(value)) {}

  template <typename F>
  decltype(auto) with(F&& work) {
    const std::lock_guard lock(mutex_);
    return std::forward<F>(work)(value_);
  }
  template <typename F>
  decltype(auto) with(F&& work) const {
    const std::lock_guard lock(mutex_);
    return std::forward<F>(work)(value_);
  }

 private:
  mutable std::mutex mutex_;
  T value_{};
};

}  // namespace conversed::model
