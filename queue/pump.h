#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "queue/lanes.h"
#include "queue/log.h"
#include "store/runtime/heartbeat.h"

namespace conversed::queue {

// Learns which partitions this pump reads. Called on the pump's thread, or on the thread that stops
// it.
class PartitionOwner {
 public:
  virtual ~PartitionOwner() = default;
  // Called before the lanes get these partitions. Returns the keys that must run even without
  // records. After an error no record of the partitions runs, and this is called again a little
  // later, unless the partitions are lost before.
  [[nodiscard]] virtual Result<std::vector<std::string>> take_up(
      std::span<const PartitionRange> partitions) = 0;
  // The lanes no longer have these partitions, and their finished positions are committed.
  // `complete` as in Revoked.
  virtual void given_up(std::span<const std::int32_t> partitions, bool complete) = 0;
};

struct PumpSettings {
  std::size_t max_poll = 1'024;                    // records taken from the log at once
  std::chrono::milliseconds commit_interval{100};  // between commits of finished positions
  std::chrono::milliseconds retry_interval{500};   // after an error of the log
  std::chrono::milliseconds revoke_wait{5'000};    // for runs of a partition about to be lost
  // Called on the pump's thread with each error of the log, also if it concerns only partitions
  // that return from being set aside. Must not block. May be empty.
  std::function<void(const Error&)> report;
  // Also called, with an error after which no record can be read (`conflict`): the log has gone
  // back or has lost records, or its client has failed for good.
  std::function<void(const Error&)> broken = {};
  PartitionOwner* owner = nullptr;  // must outlive the pump; may be null
  // Gets a heartbeat for the pump's thread; must outlive the pump. May be null.
  model::Heartbeats* heartbeats = nullptr;
};

// Moves records from a log to the lanes, as many as they have room for, and commits the finished
// positions of each partition. Owns the consumer and the only thread that uses it. Errors of the
// log never lose or skip a record: the pump tries again. Thread-safe.
class Pump final : private Listener {
 public:
  // Subscribes and starts. `log` and `lanes` must outlive the pump. Errors: those of
  // Log::subscribe.
  [[nodiscard]] static Result<std::unique_ptr<Pump>> start(PumpSettings settings, Log& log,
                                                           Lanes& lanes);
  ~Pump() override;  // stops; waits up to a second for runs in hand
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  // Holds consumption, while the handler's store fails. Records in the lanes stay there.
  void hold() { set_held(true); }
  void release() { set_held(false); }

  // Sets the partitions that this pump does not read from now on, as in Consumer::set_aside: the
  // complete set, which replaces the earlier one. Returns at once. The pump's thread gives the set
  // to the consumer before its next poll, also while it is held or without room, and again every
  // `retry_interval` if the consumer fails. PartitionOwner::given_up and `take_up` tell when it is
  // done. Runs in hand of the partitions delay the other partitions by up to `revoke_wait`.
  void set_aside(std::vector<std::int32_t> partitions);

  // Stops polling, stops the lanes with this deadline for runs in hand, commits the finished
  // positions and destroys the consumer. True: no run was left in hand. A second call does nothing.
  bool stop(std::chrono::milliseconds deadline);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  Pump(PumpSettings settings, Lanes& lanes);
  [[nodiscard]] Result<void> on_assigned(std::span<const PartitionRange> partitions) override;
  void on_revoked(std::span<const std::int32_t> partitions) override;
  void on_put_off(const Error& error) override { report(error); }
  void on_waiting() override { heartbeat_.beat(); }
  void set_held(bool on);
  [[nodiscard]] bool held();

  void run();
  void loop();
  // Moves records, or waits for some until `commit_at` at most. False after an error of the log.
  [[nodiscard]] bool move(SteadyTime commit_at);
  // Gives a new set to the consumer. False: the consumer has not accepted it yet.
  [[nodiscard]] bool apply_set_aside();
  // Whether a set is due to be given. Needs the lock.
  [[nodiscard]] bool has_set_aside() const;
  [[nodiscard]] bool took(Result<std::vector<LogRecord>> records);
  void commit();
  void report(const Error& error);
  template <typename Until>
  void wait(std::chrono::milliseconds at_most, Until until);

  const PumpSettings settings_;
  Lanes& lanes_;
  std::unique_ptr<Consumer> consumer_;
  bool all_committed_ = true;  // used by the thread alone, like the next member
  model::Heartbeat heartbeat_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool stopping_ = false;
  std::optional<std::vector<std::int32_t>> set_aside_;  // until the consumer has accepted it
  SteadyTime set_aside_at_{};                           // the next try, after an error
  std::once_flag stopped_;
  std::jthread thread_;
};

}  // namespace conversed::queue
