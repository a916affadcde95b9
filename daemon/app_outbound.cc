#include "daemon/app_outbound.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "daemon/data/storage.h"

namespace conversed::daemon {

using config::Role;
using model::Result;
using std::chrono::milliseconds;

namespace {

HttpClientSettings client_settings(std::string name, std::size_t connections,
                                   model::Heartbeats& heartbeats) {
  HttpClientSettings settings;
  settings.name = std::move(name);
  settings.connections = connections;
  settings.heartbeats = &heartbeats;
  return settings;
}

// Deliveries and their HTTP exchanges share a thread, unless the Deliverer's reads of the store
// could be slow.
HttpClientSettings webhook_settings(const config::Settings& settings,
                                    model::Heartbeats& heartbeats) {
  auto client = client_settings("webhooks", settings.delivery.connections, heartbeats);
  client.own_thread = settings.store.driver == config::StoreDriver::postgres;
  return client;
}

ProactiveSetupSettings setup_settings(const config::Settings& settings) {
  const config::ProvisioningSettings& provisioning = settings.proactive.provisioning;
  ProactiveSetupSettings setup;
  setup.follow_ups_per_month = static_cast<std::int64_t>(settings.quota.follow_ups_per_month);
  setup.provisioning_url = provisioning.url;
  while (setup.provisioning_url.ends_with('/')) setup.provisioning_url.pop_back();
  setup.provisioning_token = provisioning.token.reveal();
  setup.timeout = provisioning.timeout;
  setup.retry_for = provisioning.retry_for;
  return setup;
}

// Null: scripts are switched off, or this daemon makes no calls.
std::unique_ptr<CodePool> script_pool(const Ground& ground) {
  if (!ground.settings.flows.code || !ground.has(Role::worker)) return nullptr;
  return std::make_unique<CodePool>(find_code_program().value_or(std::filesystem::path()),
                                    ground.settings.flows.code_processes);
}

}  // namespace

OutboundParts::OutboundParts(Ground& with, const Ownership& ownership, Egress policy,
                             const OutboundPorts& ports)
    : ground(with),
      webhooks(webhook_settings(with.settings, with.heartbeats), policy),
      upstreams(client_settings("upstreams", with.settings.calls.connections, with.heartbeats),
                std::move(policy)),
      retention_clock(with.timer_clock),
      schedule_clock(with.timer_clock),
      scripts(script_pool(with)),
      setup(setup_settings(with.settings), *with.store, upstreams),
      bulk_work(*with.store, with.clock, bulk_ports()),
      job_steps(setup, bulk_work),
      job_worker(working(), with.store->jobs(), job_steps, with.timer_clock,
                 in_cluster(with.settings) ? &with.store->first().notifications() : nullptr),
      housekeeper(tidying(ports), *with.store, retention_clock),
      ramp_guard(*with.store, &with.heartbeats) {
  store::Store& store = *with.store;
  for (const auto& shard : store.shards()) {
    shards.emplace_back(new ShardServices{
        {delivering(), store.assets(), *shard, webhooks, with.clock, with.timer_clock, with.metrics,
         ownership},
        {calling(), store, *shard, upstreams, with.append_event(), with.clock, with.metrics,
         ownership},
        {scheduling(ports), *shard, with.append_event(), with.clock, with.metrics}});
  }
}

std::size_t OutboundParts::share_of(std::size_t all) const {
  return std::max<std::size_t>(1, all / ground.store->shards().size());
}

DelivererSettings OutboundParts::delivering() const {
  const config::DeliverySettings& settings = ground.settings.delivery;
  DelivererSettings delivering;
  delivering.timeout = settings.timeout;
  delivering.retry_for = settings.retry_for;
  delivering.pause_after = settings.pause_after;
  delivering.connections = share_of(settings.connections);
  delivering.secret_overlap = settings.secret_overlap;
  delivering.drain_timeout = std::min(settings.timeout, milliseconds(3'000));
  delivering.keeps_receipts = ground.settings.retention.receipts.count() > 0;
  delivering.spans = ground.spans;
  delivering.heartbeats = &ground.heartbeats;
  return delivering;
}

CallerSettings OutboundParts::calling() const {
  const std::size_t connections = share_of(ground.settings.calls.connections);
  CallerSettings calling;
  calling.max_response_bytes = ground.settings.calls.max_response_bytes;
  calling.limits.requests = connections;
  // One slow upstream leaves half of the connections to the others.
  calling.limits.per_upstream = std::max<std::size_t>(1, connections / 2);
  // An organization with several slow upstreams leaves a quarter to the others.
  calling.limits.per_organization = std::max<std::size_t>(1, connections * 3 / 4);
  calling.model_tokens_per_month = ground.settings.quota.model_tokens_per_month;
  calling.limits.scripts = share_of(ground.settings.flows.code_processes);
  calling.code = scripts.get();
  calling.timer_clock = &ground.timer_clock;
  calling.keeps_receipts = ground.settings.retention.receipts.count() > 0;
  calling.spans = ground.spans;
  calling.heartbeats = &ground.heartbeats;
  return calling;
}

SchedulerSettings OutboundParts::scheduling(const OutboundPorts& ports) const {
  SchedulerSettings scheduling;
  scheduling.backlog = ports.backlog;
  scheduling.timer_clock = &ground.timer_clock;
  scheduling.mine = ports.mine;
  scheduling.sample = ground.spans != nullptr ? ground.settings.telemetry.otlp.sample : 0;
  scheduling.heartbeats = &ground.heartbeats;
  return scheduling;
}

JobWorkerSettings OutboundParts::working() {
  JobWorkerSettings working;
  // In a cluster only the end of a lease shows that the daemon of a job has crashed.
  if (in_cluster(ground.settings)) working.lease = milliseconds(15'000);
  working.retention = ground.settings.jobs.retention;
  working.retention_clock = &retention_clock;
  return working;
}

BulkWorkPorts OutboundParts::bulk_ports() {
  BulkWorkPorts bulk{.append = ground.append_event()};
  bulk.deliver = [this](const model::SessionKey& key) { of(key).deliverer.offer_earlier(key); };
  // In a cluster the store's notifications reach this daemon, too.
  if (!in_cluster(ground.settings)) {
    bulk.retry = [this](const model::SessionKey& key) { of(key).deliverer.retry(key); };
  }
  return bulk;
}

HousekeeperSettings OutboundParts::tidying(const OutboundPorts& ports) const {
  const config::RetentionSettings& retention = ground.settings.retention;
  HousekeeperSettings tidying;
  tidying.transcripts = retention.transcripts;
  tidying.dead_letters = retention.dead_letters;
  tidying.audit = retention.audit;
  tidying.receipts = retention.receipts;
  tidying.secret_overlap = ground.settings.delivery.secret_overlap;
  tidying.finished = [this]() -> model::Result<store::Sessions::Finished> {
    auto ranges = ground.log->ranges();
    if (!ranges) return model::fail(ranges.error());
    return [ranges = *std::move(ranges)](const model::Position& at) {
      return queue::is_finished(ranges, at);
    };
  };
  tidying.forget_keys = [this](const model::KeyRange& sessions) {
    return ground.log->forget_keys(sessions);
  };
  if (ports.mine) {
    tidying.mine = [mine = ports.mine] { return mine("housekeeper"); };
  } else {
    // In a cluster, ClusterParts writes the ports.
    tidying.also = [this] { ground.door.write_ports(); };
  }
  return tidying;
}

Result<void> OutboundParts::start() {
  if (scripts && !scripts->has_program()) {
    return model::fail(
        model::Errc::invalid_argument,
        "flows.code is on, but the program conversed-code is neither beside "
        "conversed nor in ../libexec/conversed; install it, or switch flows.code off");
  }
  std::vector<Service*> services;
  if (ground.has(Role::worker)) services = {&webhooks, &upstreams};
  for_each([&](ShardServices& shard) {
    if (ground.has(Role::worker))
      services.insert(services.end(), {&shard.deliverer, &shard.caller});
    if (ground.has(Role::scheduler)) services.push_back(&shard.scheduler);
  });
  if (ground.has(Role::worker)) services.insert(services.end(), {&job_worker, &ramp_guard});
  if (ground.has(Role::scheduler)) services.push_back(&housekeeper);
  for (Service* service : services) {
    if (auto started = service->start(); !started) return started;
  }
  return {};
}

void OutboundParts::stop_jobs() {
  job_worker.stop();
  housekeeper.stop();
  ramp_guard.stop();
}

void OutboundParts::stop() {
  for_each([](ShardServices& shard) { shard.deliverer.stop(); });
  upstreams.stop();
  webhooks.stop();
  if (scripts) scripts->stop();
}

void OutboundParts::resume(const std::string& endpoint_id) {
  for_each([&](ShardServices& shard) { shard.deliverer.resume(endpoint_id); });
}

std::vector<Deliverer::Sending> OutboundParts::sending(const std::vector<model::SessionKey>& keys) {
  if (shards.size() == 1) return shards.front()->deliverer.sending(keys);
  std::vector<Deliverer::Sending> all(keys.size());
  std::map<ShardServices*, std::vector<std::size_t>> by_shard;
  for (std::size_t at = 0; at < keys.size(); ++at) by_shard[&of(keys[at])].push_back(at);
  for (const auto& [shard, places] : by_shard) {
    std::vector<model::SessionKey> its_keys;
    for (const auto at : places) its_keys.push_back(keys[at]);
    const auto sending = shard->deliverer.sending(its_keys);
    for (std::size_t n = 0; n < std::min(places.size(), sending.size()); ++n)
      all[places[n]] = sending[n];
  }
  return all;
}

std::optional<model::Timestamp> OutboundParts::calling_since(const std::string& id) {
  for (const auto& shard : shards) {
    if (const auto since = shard->caller.calling_since(id)) return since;
  }
  return std::nullopt;
}

void OutboundParts::ownership_changed() {
  for_each([](ShardServices& shard) {
    shard.deliverer.ownership_changed();
    shard.caller.ownership_changed();
  });
}

}  // namespace conversed::daemon
