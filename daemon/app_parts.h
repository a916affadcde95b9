#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string_view>
#include <thread>

#include "daemon/app.h"
#include "daemon/app_cluster.h"
#include "daemon/app_front.h"
#include "daemon/app_ground.h"
#include "daemon/app_outbound.h"
#include "daemon/app_turns.h"
#include "daemon/data/late_log.h"

// For app*.cc only.
namespace conversed::daemon {

// The groups of parts, in the order of what needs what: destruction goes the other way round. A
// group knows the ground and what is live. What else it needs of another group is a port, which
// this type wires.
struct App::Parts {
  Parts(const Outside& outside, Egress policy, api::JwtVerifier contact_center,
        std::unique_ptr<store::Store> opened_store, OpenedLog opened_log);

  [[nodiscard]] model::Result<void> start();
  void stop(std::chrono::milliseconds limit);
  // Gives the settings, which a reload has changed, to the parts that take them while they run.
  // Kept by: test_service.py Reload.
  void take_settings();
  [[nodiscard]] Progress progress();

  [[nodiscard]] ClusterPorts cluster_ports();
  void connect_operations();
  [[nodiscard]] TurnPorts turn_effects();
  [[nodiscard]] model::Result<void> start_listening();
  // The log is there, and is the store's.
  [[nodiscard]] model::Result<void> begin(std::span<const queue::PartitionRange> ranges);
  void on_store_health(bool healthy);
  void update_metrics();
  [[nodiscard]] std::string_view not_ready() const;

  Ground ground;
  LiveParts live;
  ClusterParts cluster;
  OutboundParts outbound;
  FrontParts front;
  TurnParts turns;
  std::jthread late_log;  // looks for a log that was away at the start
};

}  // namespace conversed::daemon
