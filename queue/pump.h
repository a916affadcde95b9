#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
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
class Pump final : private Listener {
 public:
  // Subscribes and starts. `log` and `lanes` must outlive the pump. Errors: those of
  // Log::subscribe.
  [[nodiscard]] static Result<std::unique_ptr<Pump>> start(PumpSettings settings, Log& log,
                                                           Lanes& lanes);
  ~Pump() override;  // stops, waiting up to a second for runs in hand
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  // Holds consumption, for as long as the handler's store is down. Records in the lanes stay there.
  void hold() { set_held(true); }
  void release() { set_held(false); }

  // Stops polling, stops the lanes with this deadline for runs in hand, commits what is finished
  // and gives up the consumer. True when no run was left in hand. Calling it again does nothing.
  bool stop(std::chrono::milliseconds deadline);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  Pump(PumpSettings settings, Lanes& lanes);
  [[nodiscard]] Result<void> on_assigned(std::span<const PartitionRange> partitions) override;
  void on_revoked(std::span<const std::int32_t> partitions) override;
  void on_waiting() override { heartbeat_.beat(); }
  void set_held(bool on);
  [[nodiscard]] bool held();

  void run();
  void loop();
  // Moves what there is, or waits until `commit_at` at most; false after an error of the log.
  [[nodiscard]] bool move(SteadyTime commit_at);
  [[nodiscard]] bool took(Result<std::vector<LogRecord>> records);
  void commit();
  void report(const Error& error);
  template <typename Until>
  void wait(std::chrono::milliseconds at_most, Until until);

  const PumpSettings settings_;
  Lanes& lanes_;
  std::unique_ptr<Consumer> consumer_;
  bool all_committed_ = true;  // the thread's own, as is the next one
  model::Heartbeat heartbeat_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool stopping_ = false;
  std::once_flag stopped_;
  std::jthread thread_;
};

}  // namespace conversed::queue
