#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "queue/lanes.h"
#include "queue/log.h"
#include "store/runtime/heartbeat.h"

namespace conversed::queue {

// Is told which partitions are read here. Called on the pump's thread, or on the one that stops it.
class PartitionOwner {
 public:
  virtual ~PartitionOwner() = default;
  // Called before the lanes have these. Returns the keys that have something to run besides their
  // records. After an error nothing of the partitions runs, and they are taken up again a little
  // later, unless they are lost before.
  [[nodiscard]] virtual Result<std::vector<std::string>> take_up(
      std::span<const PartitionRange> partitions) = 0;
  // The lanes have these no more, and their finished positions are committed. `complete` as in
  // Revoked.
  virtual void given_up(std::span<const std::int32_t> partitions, bool complete) = 0;
};

struct PumpSettings {
  std::size_t max_poll = 1'024;                    // records taken from the log at once
  std::chrono::milliseconds commit_interval{100};  // between commits of what is finished
  std::chrono::milliseconds retry_interval{500};   // after an error of the log
  std::chrono::milliseconds revoke_wait{5'000};    // for runs of a partition about to be lost
  // Called with each error of the log, on the pump's thread. Must not block. May be empty.
  std::function<void(const Error&)> report;
  // Called as well with an error after which nothing can be read any more (`conflict`): another
  // consumer has taken the place of this one, or the log has gone back.
  std::function<void(const Error&)> broken = {};
  PartitionOwner* owner = nullptr;  // must outlive the pump; may be null
  // Has a heartbeat for the pump's thread; must outlive the pump. May be null.
  model::Heartbeats* heartbeats = nullptr;
};

// Moves records from a log to the lanes, no more than they have room for, and commits what is
// finished: the lowest unfinished position of each partition. Owns the consumer and the one thread
// that uses it. Errors of the log never lose or skip a record: the pump tries again. Thread-safe.
class Pump {
 public:
  // Subscribes and starts. `log` and `lanes` must outlive the pump. Errors: those of
  // Log::subscribe.
  [[nodiscard]] static Result<std::unique_ptr<Pump>> start(PumpSettings settings, Log& log,
                                                           Lanes& lanes);
  ~Pump();  // stops, waiting up to a second for runs in hand
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  // Holds consumption, for as long as the handler's store is down. Records in the lanes stay there.
  void hold();
  void release();

  // Stops polling, stops the lanes with this deadline for runs in hand, commits what is finished
  // and gives up the consumer. True when no run was left in hand. Calling it again does nothing.
  bool stop(std::chrono::milliseconds deadline);

 private:
  class Impl;
  explicit Pump(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace conversed::queue
