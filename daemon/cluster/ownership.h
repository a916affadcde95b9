#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "store/model/event.h"
#include "store/runtime/guarded.h"

namespace conversed::daemon {

// The sessions of this daemon: it alone runs their Turns, makes their calls, drains their inboxes
// and sends their outputs. They are the sessions of the partitions that the log's group has
// assigned to it; without a cluster, all sessions. An answer may be outdated a moment later: a
// daemon that was suspended believes in its old partitions until it learns of their loss. So the
// store decides which writes have effects. Thread-safe.
//
// - At a revocation the Turns in hand end; Caller and Deliverer begin nothing more of the
//   partition. Work under way ends, and its result or mark counts.
//   Kept by: CallerOfSome.CallsOfALostPartitionAreNotRetried,
//   DelivererOfSome.OutputsOfALostPartitionAreNotSent.
// - A daemon that was suspended for longer than its session time-out works on until it learns that
//   it has lost its partitions. Its commits are right, since versions, claims and positions decide,
//   but no commit wakes the new owner. So each owner looks for calls and outputs every 3 s for 30 s
//   after its partitions changed (OwnersLook), and later, as for inboxes, every 10 s.
//   Kept by: CallerOfSome.CallsThatAnotherDaemonLeftAreFound, test_two_daemons.py Zombies.
class Ownership {
 public:
  enum class Of : std::uint8_t {
    everything,  // without a cluster
    partitions,  // the partitions that `take` added; none before `begin`
  };
  explicit Ownership(Of of) : of_(of) {}
  Ownership(const Ownership&) = delete;
  Ownership& operator=(const Ownership&) = delete;

  // Whether other daemons may share the log.
  [[nodiscard]] bool is_shared() const { return of_ == Of::partitions; }

  // Sets the log's number of partitions, above 0. Once, before any is taken.
  void begin(std::int32_t partitions);
  void take(std::span<const std::int32_t> partitions) { set(partitions, true); }
  void give_up(std::span<const std::int32_t> partitions) { set(partitions, false); }

  // The session's ownership generation. It grows each time that this daemon takes the session's
  // partition. 0: this daemon does not own the session.
  [[nodiscard]] std::uint64_t generation_of(const model::SessionKey& key) const;
  // The highest of all sessions so far.
  [[nodiscard]] std::uint64_t newest_generation() const;
  [[nodiscard]] bool owns(const model::SessionKey& key) const { return generation_of(key) != 0; }

  // This daemon's partitions, ascending. Empty without a cluster.
  [[nodiscard]] std::vector<std::int32_t> partitions() const;

 private:
  struct Generations {
    std::uint64_t last = 0;
    std::vector<std::uint64_t> of;  // generations by partition; 0: not owned
  };
  void set(std::span<const std::int32_t> partitions, bool ours);

  const Of of_;
  std::atomic<std::int32_t> count_{0};
  model::Guarded<Generations> generations_;
};

// When an owner looks again for work that no commit told of. One thread.
class OwnersLook {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  explicit OwnersLook(std::chrono::milliseconds interval) : interval_(interval) {}

  // A former owner may still commit for a while.
  void owners_changed(Steady now) { soon_until_ = now + std::chrono::seconds(30); }
  [[nodiscard]] Steady next(Steady now) const {
    if (now >= soon_until_) return now + interval_;
    return now + std::min<std::chrono::milliseconds>(interval_, std::chrono::seconds(3));
  }

 private:
  const std::chrono::milliseconds interval_;
  Steady soon_until_{};
};

}  // namespace conversed::daemon
