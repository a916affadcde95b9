// How the parts of the daemon know of each other.
#include <utility>

#include "daemon/app_parts.h"
#include "daemon/log/job_wake_up.h"
#include "daemon/ops/backlog.h"
#include "daemon/ops/logging.h"
#include "daemon/part_settings.h"
#include "daemon/reports.h"

namespace conversed::daemon {

using model::Result;
using std::chrono::milliseconds;

namespace {

// They mostly wait for the disk; what waits for them holds a request with its body.
// The places of one are those of an organisation.
constexpr api::BlockingPool::Limits management_limits{
    .threads = 4, .waiting = 256, .waiting_of_one = 64};
// One core's worth at most for whoever guesses passwords, a few places for each address.
constexpr api::BlockingPool::Limits sign_in_limits{
    .threads = 1, .waiting = 512, .waiting_of_one = 4};
// What waits holds its body. The places of one are those of an organisation.
constexpr api::BlockingPool::Limits import_limits{.threads = 1, .waiting = 16, .waiting_of_one = 4};

}  // namespace

App::Parts::Parts(const config::Settings& all, const model::Clock& time, Before before,
                  Egress policy, api::JwtVerifier contact_center,
                  std::unique_ptr<store::Store> opened_store, OpenedLog opened_log)
    : settings(all),
      clock(time),
      heartbeats(before.heartbeats),
      supervisor(before.supervisor),
      door(before.door),
      store(std::move(opened_store)),
      stored_keys(std::move(opened_log.stored_keys)),
      keyed(*opened_log.keyed),
      log(std::move(opened_log.log)),
      backups(all, time, opened_log.embedded),
      metrics(door.metrics()),
      options(api_options(all, time.now())),
      events(*log, keyed),
      assets(store->assets()),
      authenticator(*store, time, lockout_limits(all.sign_in), std::move(contact_center),
                    log_lockout),
      audit(store->audit(), log_audit),
      rate_limiter(rate_limits(all.limits)),
      public_limiter(public_rate_limits(all.limits)),
      quota({.injects_per_month = all.quota.injects_per_month, .shared = in_cluster(all)},
            store->usage(), time),
      pool(management_limits),
      sign_ins(sign_in_limits),
      imports(import_limits),
      ownership(in_cluster(all) ? Ownership::Of::partitions : Ownership::Of::everything),
      webhooks(client_settings("webhooks", all.delivery.connections, heartbeats), policy),
      upstreams(client_settings("upstreams", all.calls.connections, heartbeats), std::move(policy)),
      timer_clock(before.timer_clock),
      retention_clock(timer_clock),
      schedule_clock(timer_clock),
      deliverer(deliverer_settings(all.delivery, heartbeats), *store, webhooks, time, timer_clock,
                metrics, ownership),
      caller(calling(), *store, upstreams, append_event(), time, metrics, ownership),
      shared_limits(make_shared_limits()),
      peers(make_peers()),
      scheduler(scheduler_settings(), *store, append_event(), time, metrics),
      setup(proactive_setup_settings(all), *store, upstreams),
      job_worker(working(), store->jobs(), setup, timer_clock,
                 in_cluster(all) ? &store->notifications() : nullptr),
      housekeeper(tidying(), *store, retention_clock),
      recovery(*store),
      partitions({.in_flight = all.limits.in_flight, .heartbeats = &heartbeats}, *store, ownership,
                 recovery, busy,
                 {.ownership_changed =
                      [this] {
                        deliverer.ownership_changed();
                        caller.ownership_changed();
                      },
                  .touch = [this](const model::SessionKey& key) { touch_lane(key); }}) {
  hear_others();
  if (opened_log.jobs) {
    job_queue.emplace(
        std::move(opened_log.jobs), !has(config::Role::worker)
                                        ? std::function<void(const std::string&)>()
                                        : [this](const std::string& id) { job_worker.offer(id); });
  }
  store->jobs().on_change([this](const std::string& id, store::Jobs::Change change) {
    job_watch.notify(id);
    if (change == store::Jobs::Change::created) return wake_job(id);
    job_worker.offer(id);
  });
}

CallerSettings App::Parts::calling() {
  auto calling = caller_settings(settings, heartbeats);
  calling.timer_clock = &timer_clock;
  return calling;
}

JobWorkerSettings App::Parts::working() {
  auto working = job_worker_settings(settings, [this](const std::string& id) { wake_job(id); });
  working.retention_clock = &retention_clock;
  return working;
}

// A log that fails keeps no job waiting that can be done here.
void App::Parts::wake_job(const std::string& id) {
  append_wake_up(job_queue ? job_queue->log() : *log, id, clock.now(),
                 [this, id](const model::Error& /*error*/) { job_worker.offer(id); });
}

std::size_t App::Parts::records_in_flight() const {
  const queue::Lanes* all = lanes_to_touch.load();
  return all == nullptr ? lag_elsewhere.load() : all->in_flight();
}

AppendEvent App::Parts::append_event() {
  return [this](const model::Event& event, std::function<void(Result<queue::Appended>)> done) {
    events.append(event, std::move(done));
  };
}

TurnBatchContext App::Parts::turn_batch_context(std::size_t log_partitions) {
  return {.store = *store,
          .assets = assets,
          .pending_replies = pending_replies,
          .clock = clock,
          .timer_clock = &timer_clock,
          .limits = flow_limits(settings.flows, settings.calls),
          .recovery = &recovery,
          .partitions = static_cast<std::int32_t>(log_partitions)};
}

TurnPorts App::Parts::ports() {
  return {.deliver = [this](const model::SessionKey& key) { deliverer.offer(key); },
          .call = [this](const std::string& project,
                         const std::string& target) { caller.offer(project, target); },
          .timer = [this](model::Timestamp due) { scheduler.offer(due); },
          .schedule = [this](const model::Schedule& waits) { scheduler.offer(waits); },
          .job = [this](const std::string& id) { job_worker.offer(id); },
          .counted = [this](const std::string& organisation_id,
                            std::int64_t injects) { quota.committed(organisation_id, injects); },
          .fatal = [this](const model::Error& error) { die(error); },
          .ran =
              [this](std::chrono::steady_clock::duration took) {
                metrics.turn_seconds.observe(std::chrono::duration<double>(took).count());
              }};
}

Result<void> App::Parts::start_listening() {
  services.emplace(
      api::Services{
          .entry = {.options = options,
                    .clock = clock,
                    .store = *store,
                    .authenticator = authenticator,
                    .audit = audit,
                    .rate_limiter = rate_limiter,
                    .public_limiter = public_limiter,
                    .pool = pool,
                    .sign_ins = sign_ins,
                    .on_inject_answered =
                        [this](int status, std::chrono::steady_clock::duration took) {
                          metrics.inject_answered(status, took);
                        }},
          .messages = {.options = options,
                       .clock = clock,
                       .store = *store,
                       .events = events,
                       .assets = assets,
                       .quota = quota,
                       .busy = busy,
                       .pending_replies = pending_replies,
                       .watch = watch,
                       .pool = pool},
          .sessions = {
              .clock = clock,
              .schedule_clock = schedule_clock,
              .store = *store,
              .log = *log,
              .events = events,
              .assets = assets,
              .busy = busy,
              .pending_replies = pending_replies,
              .touch = [this](const model::SessionKey& key) { touch_lane(key); },
              .deliver = [this](const model::SessionKey& key) { deliverer.offer_earlier(key); },
              .schedule = [this](const model::Schedule& waits) { scheduler.offer(waits); },
              .timer = [this](model::Timestamp due) { scheduler.offer(due); }},
          .projects = {.options = options,
                       .clock = clock,
                       .store = *store,
                       .assets = assets,
                       .job_watch = job_watch,
                       .imports = imports},
          .accounts = {.options = options,
                       .clock = clock,
                       .store = *store,
                       .authenticator = authenticator,
                       .audit = audit,
                       .pool = pool,
                       .sign_ins = sign_ins},
          .daemon = {.options = options,
                     .clock = clock,
                     .store = *store,
                     .log = *log,
                     .events = events,
                     .pending_replies = pending_replies,
                     .watch = watch,
                     .back_up =
                         [this](const std::string& name) {
                           return back_up(backups, store->key_rotation(), name);
                         },
                     .members = [this] { return members(); }}});
  if (auto listening = door.listen(); !listening) return listening;
  metrics.add_source([this] { update_metrics(); });
  door.open(*services, [this] { return not_ready(); });
  return {};
}

void App::Parts::update_metrics() {
  metrics.events_appended.raise_to(events.appended());
  if (consuming.load() && worker) {  // before, there is none, or never
    const auto& counts = worker->counts();
    metrics.turns.raise_to(counts.turns.load());
    metrics.turn_conflicts.raise_to(counts.conflicts.load());
    metrics.follow_ups_sent.raise_to(counts.follow_ups_sent.load());
    metrics.follow_ups_dropped.raise_to(counts.follow_ups_dropped.load());
    metrics.dead_letters.raise_to(counts.dead_letters.load());
  }
  metrics.commits.raise_to(store->committer().transactions());
  metrics.session_commits.raise_to(store->committer().commits());
  metrics.calls_in_flight.set(static_cast<double>(upstreams.in_flight()));
  metrics.store_healthy.set(store->committer().healthy() ? 1 : 0);
  metrics.log_healthy.set(log->health() ? 1 : 0);
  metrics.ready.set(not_ready().empty() ? 1 : 0);
  update_backlog(metrics, *log, *store);
}

}  // namespace conversed::daemon
