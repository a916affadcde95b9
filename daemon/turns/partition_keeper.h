#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "daemon/cluster/ownership.h"
#include "daemon/service/service.h"
#include "daemon/service/service_thread.h"
#include "daemon/turns/recovery.h"
#include "queue/pump.h"
#include "store/runtime/heartbeat.h"

namespace conversed::api {
class BusySessions;
}
namespace conversed::store {
class RecentSessions;
class Shard;
}  // namespace conversed::store

namespace conversed::daemon {

struct PartitionKeeperSettings {
  std::size_t in_flight = 4'096;  // the most unfinished records that a daemon may have read
  std::chrono::milliseconds look_interval{10'000};
  model::Heartbeats* heartbeats = nullptr;  // of its thread; must outlive it. Null: none
};

// The keeper calls these. None may block.
struct PartitionKeeperPorts {
  std::function<void()> ownership_changed;
  std::function<void(const model::SessionKey&)> touch;  // the session may have events to run
};

// Keeps the state of partitions besides their records, where several daemons share a log. At an
// assignment it takes up the events that a crash has left (Recovery) and finds the sessions whose
// inboxes can be drained. It drops the sessions in memory (RecentSessions). At a revocation it ends
// this daemon's ownership and marks the partition as given up in the store. In between it reads the
// inboxes every 10 s: a former owner that was suspended may still commit to them.
//
// Invariant: it forgets the sizes of the inboxes of lost partitions, also those that a late commit
// has set. Otherwise their full inboxes would be reported to the other daemons for good.
// Kept by: PartitionKeeperTest.ForgetsTheInboxesOfLostPartitions.
//
// Thread-safe. The pump alone calls it as a PartitionOwner. A thread of its own reads the inboxes.
class PartitionKeeper final : public queue::PartitionOwner, public Service {
 public:
  // All must outlive it.
  PartitionKeeper(PartitionKeeperSettings settings, store::Store& store, Ownership& ownership,
                  Recovery& recovery, api::BusySessions& busy, store::RecentSessions& recent,
                  PartitionKeeperPorts ports);

  [[nodiscard]] model::Result<void> start() override;
  // Ends the thread. `given_up` may still be called afterwards.
  void stop() override { thread_.stop(); }

  // Errors: those of the store; the pump tries again.
  [[nodiscard]] model::Result<std::vector<std::string>> take_up(
      std::span<const queue::PartitionRange> partitions) override;
  void given_up(std::span<const std::int32_t> partitions, bool complete) override;

 private:
  struct Letters {
    bool stop = false;
  };
  void run();
  void look();
  [[nodiscard]] model::Result<std::vector<std::string>> sessions_to_run(
      std::span<const queue::PartitionRange> partitions);
  void forget_lost_inboxes();

  const PartitionKeeperSettings settings_;
  store::Store& store_;
  Ownership& ownership_;
  Recovery& recovery_;
  api::BusySessions& busy_;
  store::RecentSessions& recent_;
  const PartitionKeeperPorts ports_;
  ServiceThread<Letters> thread_;  // last: it uses all others
};

// Reads the inboxes of the sessions for which `wanted` is true, and writes their sizes to `busy`.
// Returns the encoded keys of the sessions that can be drained. Call it before any of these
// sessions runs. Otherwise an older size could replace a newer one. Errors: those of the store.
[[nodiscard]] model::Result<std::vector<std::string>> waiting_sessions(
    store::Shard& shard, api::BusySessions& busy,
    const std::function<bool(const model::SessionKey&)>& wanted);

}  // namespace conversed::daemon
