#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/app.h"
#include "daemon/app_cluster.h"
#include "daemon/app_front.h"
#include "daemon/app_ground.h"
#include "daemon/app_outbound.h"
#include "daemon/app_turns.h"
#include "daemon/data/late_log.h"
#include "daemon/ops/sampler.h"
#include "store/shards/backlog.h"

// For app*.cc only.
namespace conversed::daemon {

// The groups of parts. Each needs earlier ones only, and destruction goes in reverse. A group knows
// `ground` and `live`. It calls other groups through ports, which this type connects.
struct App::Parts {
  Parts(const Outside& outside, Egress policy, api::JwtVerifier contact_center,
        std::unique_ptr<store::Store> opened_store, OpenedLog opened_log);

  [[nodiscard]] model::Result<void> start();
  void stop(std::chrono::milliseconds limit);
  // Gives reloaded settings to the parts that can change them while they run.
  // Kept by: test_service.py Reload.
  void take_settings();
  [[nodiscard]] Progress progress();

  [[nodiscard]] ClusterPorts cluster_ports();
  void connect_operations();
  [[nodiscard]] api::ReasonPorts reason_ports();
  [[nodiscard]] TurnPorts turn_effects();
  [[nodiscard]] model::Result<void> start_listening();
  // Goes on with the start once the log can be read and fits the store.
  [[nodiscard]] model::Result<void> begin(std::span<const queue::PartitionRange> ranges);
  void on_store_health(std::size_t shard, bool healthy);
  // A partition has begun or ended to move to another server.
  void take_layout();
  // Since when one of the shards fails.
  [[nodiscard]] std::optional<model::Timestamp> store_failing() const;
  void update_metrics();
  void show_oldest(const store::Backlog& backlog);
  // Shows in a metric how long the oldest case of the reason has waited. No time: there is none.
  void show_waiting(model::Reason reason, std::optional<model::Timestamp> since,
                    model::Timestamp now);
  [[nodiscard]] std::string_view not_ready() const;
  // Since when the log fails, as far as it was asked: the supervisor asks each few seconds.
  [[nodiscard]] std::optional<model::Timestamp> log_failing();

  Ground ground;
  LiveParts live;
  ClusterParts cluster;
  OutboundParts outbound;
  FrontParts front;
  TurnParts turns;
  Sampler sampler;
  std::atomic<bool> layout_changed{false};
  std::atomic<std::int32_t> partitions{0};  // of the log; 0: not known yet
  // Of each shard. The epoch: it works.
  std::vector<std::atomic<model::Timestamp>> store_failing_since;
  std::atomic<model::Timestamp> log_failing_since{model::Timestamp()};  // as above
  std::jthread late_log;  // waits for a log that was away at the start
};

}  // namespace conversed::daemon
