#include "daemon/app_outbound.h"

#include <utility>
#include <vector>

#include "daemon/log/job_wake_up.h"
#include "daemon/part_settings.h"

namespace conversed::daemon {

using config::Role;
using model::Result;

OutboundParts::OutboundParts(Ground& with, const Ownership& ownership, Egress policy,
                             std::unique_ptr<queue::Log> jobs_log, OutboundPorts ports)
    : ground(with),
      webhooks(client_settings("webhooks", with.settings.delivery.connections, with.heartbeats),
               policy),
      upstreams(client_settings("upstreams", with.settings.calls.connections, with.heartbeats),
                std::move(policy)),
      retention_clock(with.timer_clock),
      schedule_clock(with.timer_clock),
      deliverer(deliverer_settings(with.settings.delivery, with.heartbeats), *with.store, webhooks,
                with.clock, with.timer_clock, with.metrics, ownership),
      caller(calling(), *with.store, upstreams, with.append_event(), with.clock, with.metrics,
             ownership),
      scheduler(scheduling(ports), *with.store, with.append_event(), with.clock, with.metrics),
      setup(proactive_setup_settings(with.settings), *with.store, upstreams),
      job_worker(working(), with.store->jobs(), setup, with.timer_clock,
                 in_cluster(with.settings) ? &with.store->notifications() : nullptr),
      housekeeper(tidying(ports), *with.store, retention_clock) {
  if (!jobs_log) return;
  job_queue.emplace(
      std::move(jobs_log), !ground.has(Role::worker)
                               ? std::function<void(const std::string&)>()
                               : [this](const std::string& id) { job_worker.offer(id); });
}

CallerSettings OutboundParts::calling() const {
  auto calling = caller_settings(ground.settings, ground.heartbeats);
  calling.timer_clock = &ground.timer_clock;
  return calling;
}

SchedulerSettings OutboundParts::scheduling(OutboundPorts& ports) const {
  SchedulerSettings scheduling;
  scheduling.backlog = std::move(ports.backlog);
  scheduling.timer_clock = &ground.timer_clock;
  scheduling.heartbeats = &ground.heartbeats;
  if (ports.mine) scheduling.mine = ports.mine;
  return scheduling;
}

JobWorkerSettings OutboundParts::working() {
  auto working =
      job_worker_settings(ground.settings, [this](const std::string& id) { wake_job(id); });
  working.retention_clock = &retention_clock;
  return working;
}

HousekeeperSettings OutboundParts::tidying(const OutboundPorts& ports) const {
  // In a cluster, ClusterParts writes the ports.
  if (!ports.mine) {
    return housekeeper_settings(ground.settings, [this] { ground.door.write_ports(); });
  }
  auto tidying = housekeeper_settings(ground.settings, {});
  tidying.mine = [mine = ports.mine] { return mine("housekeeper"); };
  return tidying;
}

Result<void> OutboundParts::start() {
  std::vector<Service*> services;
  if (ground.has(Role::worker)) services = {&webhooks, &upstreams, &deliverer, &caller};
  if (ground.has(Role::scheduler)) services.push_back(&scheduler);
  if (ground.has(Role::worker)) services.push_back(&job_worker);
  if (job_queue) services.push_back(&*job_queue);
  if (ground.has(Role::scheduler)) services.push_back(&housekeeper);
  for (Service* service : services) {
    if (auto started = service->start(); !started) return started;
  }
  return {};
}

void OutboundParts::stop_jobs() {
  if (job_queue) job_queue->stop();
  job_worker.stop();
  housekeeper.stop();
}

void OutboundParts::stop() {
  deliverer.stop();
  upstreams.stop();
  webhooks.stop();
}

void OutboundParts::ownership_changed() {
  deliverer.ownership_changed();
  caller.ownership_changed();
}

void OutboundParts::job_changed(const std::string& id, store::Jobs::Change change) {
  change == store::Jobs::Change::created ? wake_job(id) : job_worker.offer(id);
}

// A log that fails keeps no job waiting that can be done here.
void OutboundParts::wake_job(const std::string& id) {
  append_wake_up(job_queue ? job_queue->log() : *ground.log, id, ground.clock.now(),
                 [this, id](const model::Error& /*error*/) { job_worker.offer(id); });
}

}  // namespace conversed::daemon
