#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/app_front.h"
#include "daemon/app_ground.h"
#include "daemon/cluster/ownership.h"
#include "daemon/turns/flight_recorder.h"
#include "daemon/turns/partition_keeper.h"
#include "daemon/turns/recovery.h"
#include "daemon/turns/turn_worker.h"
#include "queue/lanes.h"
#include "queue/pump.h"
#include "store/conversation/recent_sessions.h"

// For app*.cc only.
namespace conversed::daemon {

// The turns group: from the log's records to committed Turns. `start`, `drain` and `stop` belong to
// one thread, the rest is thread-safe.
class TurnParts {
 public:
  // `effects`: the effects that leave the group. All other arguments must outlive it.
  TurnParts(Ground& ground, LiveParts& live, Ownership& ownership, TurnPorts effects,
            std::function<void()> ownership_changed);

  // Consumes the log, which holds `ranges`. `run`: this daemon's run in a cluster, else empty.
  [[nodiscard]] model::Result<void> start(std::span<const queue::PartitionRange> ranges,
                                          const std::string& run);
  void stop_looking() { partitions_.stop(); }
  // Finishes the Turns in hand. False: the limit has passed, and some records stay unfinished in
  // the log.
  [[nodiscard]] bool drain(std::chrono::milliseconds limit);
  void stop();
  // After the log has stopped. `drained`: the result of `drain`.
  void mark_clean_stop(bool drained);

  // Looks at the health of the shards, and at their partitions. While a shard fails, or a partition
  // is being moved, no Turn of its sessions begins, since none could be committed.
  void look_at_shards();
  // Runs the session's lane once more, if the session belongs to this daemon.
  void touch(const model::SessionKey& key);
  // Drops the sessions in memory.
  void forget_sessions() { recent_.clear(); }
  // For a daemon that does not consume the log: notes how many records come before the events of
  // its scheduler.
  void look_at_lag();
  // Whether the session's events wait although other sessions of its organisation run.
  [[nodiscard]] bool waits_for_share(const model::SessionKey& key) const;
  [[nodiscard]] std::size_t records_in_flight() const;  // 0 as long as there are no lanes

 private:
  [[nodiscard]] model::Result<void> take_up_log(std::span<const queue::PartitionRange> ranges);
  [[nodiscard]] model::Result<void> drain_inboxes();
  [[nodiscard]] TurnBatchContext batch_context();
  [[nodiscard]] TurnPorts ports();
  void park_in_log(queue::LanesSettings& settings);
  [[nodiscard]] model::Result<void> start_pump();
  [[nodiscard]] std::vector<std::int32_t> partitions_aside() const;

  Ground& ground_;
  LiveParts& live_;
  Ownership& ownership_;
  const TurnPorts effects_;
  store::RecentSessions recent_;
  Recovery recovery_;
  PartitionKeeper partitions_;
  std::unique_ptr<FlightRecorder> recorder_;  // null: the log is shared, or the file can't be made
  std::int32_t log_partitions_ = 0;
  bool sharing_ = false;                       // this run may own partitions of a shared log
  std::atomic<std::size_t> lag_elsewhere_{0};  // for a daemon without lanes
  std::optional<TurnWorker> worker_;
  std::unique_ptr<queue::Lanes> lanes_;
  std::atomic<queue::Lanes*> lanes_to_touch_{nullptr};
  std::unique_ptr<queue::Pump> pump_;
  std::atomic<queue::Pump*> pump_to_hold_{nullptr};
  std::mutex looking_;               // at the shards: a later look gives the pump a later set
  std::vector<std::int32_t> aside_;  // that the pump was given; under `looking_`
};

}  // namespace conversed::daemon
