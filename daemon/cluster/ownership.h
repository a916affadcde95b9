#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "store/model/event.h"
#include "store/runtime/guarded.h"

namespace conversed::daemon {

// The sessions of this daemon: it alone runs their Turns, makes their calls, drains their inboxes
// and sends their outputs. They are the sessions of the partitions that the log's group has
// assigned to it; without a cluster, all sessions. The answer may be outdated a moment later. In a
// daemon that was stopped for a while it is wrong until the daemon learns of its loss. So the store
// decides what has effects. Thread-safe.
//
// - At a revocation the Turns in hand end; Caller and Deliverer begin nothing more of the
//   partition. Work under way ends, and its result or mark counts.
//   Kept by: CallerOfSome.CallsOfALostPartitionAreNotRetried,
//   DelivererOfSome.OutputsOfALostPartitionAreNotSent.
// - A daemon that was stopped for longer than its session time-out works on until it learns that
//   its partitions are gone. Its commits are right, since versions, claims and positions decide,
//   but no commit wakes the new owner. So an owner looks every few seconds for calls, inboxes and
//   outputs. Kept by: CallerOfSome.CallsThatAnotherDaemonLeftAreFound, test_two_daemons.py Zombies.
class Ownership {
 public:
  enum class Of : std::uint8_t {
    everything,  // there is no other daemon
    partitions,  // what `take` says; nothing before `begin`
  };
  explicit Ownership(Of of) : of_(of) {}
  Ownership(const Ownership&) = delete;
  Ownership& operator=(const Ownership&) = delete;

  // Whether other daemons may share the log.
  [[nodiscard]] bool is_shared() const { return of_ == Of::partitions; }

  // How many partitions the log has, above 0. Once, before any is taken.
  void begin(std::int32_t partitions);
  void take(std::span<const std::int32_t> partitions) { set(partitions, true); }
  void give_up(std::span<const std::int32_t> partitions) { set(partitions, false); }

  // Grows each time that the session becomes ours; 0: it is not ours.
  [[nodiscard]] std::uint64_t generation_of(const model::SessionKey& key) const;
  [[nodiscard]] bool owns(const model::SessionKey& key) const { return generation_of(key) != 0; }

  // Our partitions, ascending; none without a cluster.
  [[nodiscard]] std::vector<std::int32_t> partitions() const;

 private:
  struct Generations {
    std::uint64_t last = 0;
    std::vector<std::uint64_t> of;  // by partition; 0: not ours
  };
  void set(std::span<const std::int32_t> partitions, bool ours);

  const Of of_;
  std::atomic<std::int32_t> count_{0};
  model::Guarded<Generations> generations_;
};

}  // namespace conversed::daemon
