#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "daemon/app_ground.h"
#include "daemon/calls/caller.h"
#include "daemon/cluster/ownership.h"
#include "daemon/code/code_pool.h"
#include "daemon/data/housekeeper.h"
#include "daemon/delivery/deliverer.h"
#include "daemon/jobs/bulk_work.h"
#include "daemon/jobs/job_worker.h"
#include "daemon/jobs/proactive_setup.h"
#include "daemon/outbound/egress.h"
#include "daemon/outbound/http_client.h"
#include "daemon/timers/scheduler.h"
#include "daemon/turns/ramp_guard.h"

// For app*.cc only.
namespace conversed::daemon {

// Calls of the outbound group to the other groups.
struct OutboundPorts {
  std::function<std::size_t()> backlog;        // unfinished records, both read and parked
  std::function<bool(std::string_view)> mine;  // ClusterParts::mine
};

// The services that work on the rows of a shard.
struct ShardServices {
  Deliverer deliverer;
  Caller caller;
  Scheduler scheduler;
};

// The outbound group: the services that work on rows of the store. They send outputs, make calls,
// append the events of due timers, and do jobs.
struct OutboundParts {
  // The ground and `ownership` must outlive it.
  OutboundParts(Ground& with, const Ownership& ownership, Egress policy,
                const OutboundPorts& ports);

  [[nodiscard]] model::Result<void> start();
  void stop_jobs();
  // Stops the others: deliveries and HTTP exchanges.
  void stop();

  void ownership_changed();
  void resume(const std::string& endpoint_id);  // Deliverer::resume in all shards

  // Deliverer::sending of sessions of any shards, in order.
  [[nodiscard]] std::vector<Deliverer::Sending> sending(const std::vector<model::SessionKey>& keys);
  // Caller::calling_since of a call of any shard.
  [[nodiscard]] std::optional<model::Timestamp> calling_since(const std::string& id);

  // The services of the session's shard.
  [[nodiscard]] ShardServices& of(const model::SessionKey& key) {
    return *shards[ground.store->layout().shard_of(key)];
  }
  // Calls `tell` with the services of each shard.
  template <typename Tell>
  void for_each(const Tell& tell) {
    for (const auto& each : shards) tell(*each);
  }

  Ground& ground;
  HttpClient webhooks;
  HttpClient upstreams;
  const RetentionClock retention_clock;
  const ScheduleClock schedule_clock;
  const std::unique_ptr<CodePool> scripts;             // null: they are switched off
  std::vector<std::unique_ptr<ShardServices>> shards;  // as store::Shards
  ProactiveSetup setup;
  BulkWork bulk_work;
  StepsByType job_steps;
  JobWorker job_worker;
  Housekeeper housekeeper;
  RampGuard ramp_guard;

 private:
  // The settings of each service, made of the operator's.
  [[nodiscard]] DelivererSettings delivering() const;
  [[nodiscard]] CallerSettings calling() const;
  [[nodiscard]] SchedulerSettings scheduling(const OutboundPorts& ports) const;
  // A shard's share of a number of connections or scripts.
  [[nodiscard]] std::size_t share_of(std::size_t all) const;
  [[nodiscard]] JobWorkerSettings working();
  [[nodiscard]] BulkWorkPorts bulk_ports();
  [[nodiscard]] HousekeeperSettings tidying(const OutboundPorts& ports) const;
};

}  // namespace conversed::daemon
