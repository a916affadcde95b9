#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "store/model/event.h"
#include "store/runtime/guarded.h"

namespace conversed::daemon {

// Which sessions are this daemon's: it alone runs their Turns, makes their calls, drains their
// inboxes and sends their outputs. Those of the partitions that the log's group has assigned to it,
// or all of them. What it says may be over a moment later, and with a daemon that was stopped for a
// while it is wrong until that finds out: the store decides what has effects. Thread-safe.
class Ownership {
 public:
  enum class Of : std::uint8_t {
    everything,  // there is no other daemon
    partitions,  // what `take` says; nothing before `begin`
  };
  explicit Ownership(Of of) : of_(of) {}
  Ownership(const Ownership&) = delete;
  Ownership& operator=(const Ownership&) = delete;

  // Whether there may be others.
  [[nodiscard]] bool is_shared() const { return of_ == Of::partitions; }

  // How many partitions the log has, above 0. Once, before any is taken.
  void begin(std::int32_t partitions);
  void take(std::span<const std::int32_t> partitions);
  void give_up(std::span<const std::int32_t> partitions);

  // Tells apart the times for which the session is ours, with others' between them; 0: it is not.
  [[nodiscard]] std::uint64_t generation_of(const model::SessionKey& key) const;
  [[nodiscard]] bool owns(const model::SessionKey& key) const { return generation_of(key) != 0; }

  // Those that are ours, ascending; none where there is no other daemon.
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
