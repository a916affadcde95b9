#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/runtime/guarded.h"

namespace conversed::model {

// A loop that is watched beats at least this often, whether or not it has anything to do.
inline constexpr std::chrono::milliseconds beat_interval{1'000};

// The heartbeat of one loop, from Heartbeats::add; beats of a default-constructed one are ignored.
// The loop holds it. A destroyed heartbeat means that the loop has ended, not that it stalls. One
// thread at a time.
class Heartbeat {
 public:
  Heartbeat() = default;

  void beat() {
    if (count_) count_->fetch_add(1, std::memory_order_relaxed);
  }

 private:
  friend class Heartbeats;
  using Count = std::atomic<std::uint64_t>;
  explicit Heartbeat(std::shared_ptr<Count> count) : count_(std::move(count)) {}

  std::shared_ptr<Count> count_;
};

// Knows which of the daemon's loops still make progress. Thread-safe; a Heartbeat may outlive it.
class Heartbeats {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `name` is for people: "worker 2".
  [[nodiscard]] Heartbeat add(std::string name);

  // The names of the loops that have not beaten for `limit`, in the order in which they began. A
  // stall begins at the first call that finds no new beat. `now` never goes back.
  [[nodiscard]] std::vector<std::string> stalled(Time now, std::chrono::milliseconds limit);

 private:
  struct Watched {
    std::string name;
    std::weak_ptr<const Heartbeat::Count> count;
    std::uint64_t seen = 0;
    Time seen_at{};
    bool looked_at = false;
  };
  Guarded<std::vector<Watched>> loops_;
};

// For parts that may run without Heartbeats.
[[nodiscard]] inline Heartbeat heartbeat_of(Heartbeats* heartbeats, std::string name) {
  return heartbeats == nullptr ? Heartbeat() : heartbeats->add(std::move(name));
}

}  // namespace conversed::model
