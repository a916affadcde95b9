#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "queue/lanes.h"
#include "queue/log.h"
#include "store/model/heartbeat.h"

namespace conversed::queue {

struct PumpSettings {
  std::size_t max_poll = 1'024;                    // records taken from the log at once
  std::chrono::milliseconds commit_interval{100};  // between commits of what is finished
  std::chrono::milliseconds retry_interval{500};   // after an error of the log
  std::chrono::milliseconds revoke_wait{5'000};    // for runs of a partition about to be lost
  // Told of each error of the log; called on the pump's thread. Must not block. May be empty.
  std::function<void(const Error&)> report;
  // Told, as well, of an error after which nothing can be read any more (`conflict`): somebody else
  // has taken the consumer's place, or the log has gone back.
  std::function<void(const Error&)> broken = {};
  // Where the pump's thread has a heartbeat; must outlive the pump. Null: nobody watches.
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

  // Holds consumption while what the handler needs is down; records in the lanes stay there.
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
