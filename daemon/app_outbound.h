#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

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

// The outbound group: the services that work on rows of the store. They send outputs, make calls,
// append the events of due timers, and do jobs.
struct OutboundParts {
  // The ground and `ownership` must outlive it.
  OutboundParts(Ground& with, const Ownership& ownership, Egress policy, OutboundPorts ports);

  [[nodiscard]] model::Result<void> start();
  void stop_jobs();
  // Stops the others: deliveries and HTTP exchanges.
  void stop();

  void ownership_changed();

  Ground& ground;
  HttpClient webhooks;
  HttpClient upstreams;
  const RetentionClock retention_clock;
  const ScheduleClock schedule_clock;
  Deliverer deliverer;
  const std::unique_ptr<CodePool> scripts;  // null: they are switched off
  Caller caller;
  Scheduler scheduler;
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
  [[nodiscard]] SchedulerSettings scheduling(OutboundPorts& ports) const;
  [[nodiscard]] JobWorkerSettings working();
  [[nodiscard]] BulkWorkPorts bulk_ports();
  [[nodiscard]] HousekeeperSettings tidying(const OutboundPorts& ports) const;
};

}  // namespace conversed::daemon
