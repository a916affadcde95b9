#pragma once

#include <atomic>
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

namespace conversed::daemon {

struct PartitionKeeperSettings {
  std::size_t in_flight = 4'096;  // records that a daemon may have taken and not finished
  std::chrono::milliseconds look_interval{3'000};
  // Where its thread has a heartbeat; must outlive it. Null: nobody watches.
  model::Heartbeats* heartbeats = nullptr;
};

// Told by the keeper; none may block.
struct PartitionKeeperPorts {
  std::function<void()> ownership_changed;
  std::function<void(const model::SessionKey&)> touch;  // the session may have something to run
};

// Sees to what belongs to partitions beside their records, where several daemons share them. When
// some come: what a crash has left of them, and the inboxes of their sessions. When they go: that
// nobody here goes on with them, and that the store says so. In between it looks at the inboxes
// again and again: a daemon that was stopped for a while may commit something to them after they
// were taken up here.
//
// Thread-safe; as a PartitionOwner it is called by the pump alone. A thread of its own looks.
class PartitionKeeper final : public queue::PartitionOwner, public Service {
 public:
  // All must outlive it.
  PartitionKeeper(PartitionKeeperSettings settings, store::Store& store, Ownership& ownership,
                  Recovery& recovery, api::BusySessions& busy, PartitionKeeperPorts ports);
  ~PartitionKeeper() override;

  [[nodiscard]] model::Result<void> start() override;
  // No look goes on after it. Partitions may be given up after it all the same.
  void stop() override;
  [[nodiscard]] std::string_view name() const override;

  // Errors: those of the store; it is tried again then.
  [[nodiscard]] model::Result<std::vector<std::string>> take_up(
      std::span<const queue::PartitionRange> partitions) override;
  void given_up(std::span<const std::int32_t> partitions, bool complete) override;

 private:
  struct Letters {
    bool stop = false;
    [[nodiscard]] bool empty() const { return !stop; }
  };
  void run();
  void look();

  const PartitionKeeperSettings settings_;
  store::Store& store_;
  Ownership& ownership_;
  Recovery& recovery_;
  api::BusySessions& busy_;
  const PartitionKeeperPorts ports_;
  ServiceThread<Letters> thread_;  // last: it uses all others
};

// Calls `each` with every session that has something to run: what waits in an inbox that nothing
// keeps back, or outputs that are held for a client. Errors: those of the store.
[[nodiscard]] model::Result<void> for_each_to_drain(
    store::Store& store, const std::function<void(const model::SessionKey&)>& each);

// What waits in the store for sessions that `wanted` names: sizes of inboxes go to `busy`, and
// what is returned are the keys, encoded, of those that have something to run. To be called before
// any of them runs, so that no older figure replaces a newer one. Errors: those of the store.
[[nodiscard]] model::Result<std::vector<std::string>> waiting_sessions(
    store::Store& store, api::BusySessions& busy,
    const std::function<bool(const model::SessionKey&)>& wanted);

}  // namespace conversed::daemon
