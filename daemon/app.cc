#include "daemon/app.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>

#include "api/assets_cache.h"
#include "api/auth/authenticator.h"
#include "api/blocking_pool.h"
#include "api/busy_sessions.h"
#include "api/events.h"
#include "api/http_server.h"
#include "api/inject_quota.h"
#include "api/operations.h"
#include "api/rate_limiter.h"
#include "api/router.h"
#include "api/services.h"
#include "api/waiters.h"
#include "daemon/admin.h"
#include "daemon/caller.h"
#include "daemon/data_folder.h"
#include "daemon/deliverer.h"
#include "daemon/egress.h"
#include "daemon/embedded.h"
#include "daemon/http_client.h"
#include "daemon/late_log.h"
#include "daemon/logging.h"
#include "daemon/metrics.h"
#include "daemon/part_settings.h"
#include "daemon/recovery.h"
#include "daemon/scheduler.h"
#include "daemon/turn_worker.h"
#include "daemon/version.h"
#include "queue/pump.h"

namespace conversed::daemon {

using model::fail;
using model::Result;
using std::chrono::milliseconds;

namespace {

// Of the time for a stop, what is kept back for the steps after the answers: Turns in hand,
// deliveries, the store.
constexpr milliseconds reserved_for_commits{6'000};
// They mostly wait for the disk; what waits for them holds a request with its body.
constexpr std::size_t management_threads = 4;
constexpr std::size_t management_queue = 256;
// One core's worth at most for whoever guesses passwords.
constexpr std::size_t sign_in_threads = 1;
constexpr std::size_t sign_in_queue = 64;

void log_key_file(api::KeyFileNews news, std::string_view message) {
  if (news == api::KeyFileNews::unusable) {
    log::error("keys of contact-center tokens can't be read", {{"error", message}});
  } else {
    log::info("keys of contact-center tokens have changed", {{"message", message}});
  }
}

}  // namespace

// All parts, in the order of what needs what: destruction goes the other way round.
struct App::Parts {
  Parts(const config::Settings& all, const model::Clock& time, DataFolder locked, Egress policy,
        api::JwtVerifier contact_center, std::unique_ptr<store::Store> opened_store,
        OpenedLog opened_log);

  Result<void> start();
  void stop(milliseconds limit);

  Result<void> start_consuming(std::span<const queue::PartitionRange> ranges);
  Result<void> start_listening();
  Result<void> drain_inboxes();
  queue::LanesSettings lanes_settings(std::span<const queue::PartitionRange> ranges) const;
  TurnPorts ports();
  ChainContext chain_context();
  AppendEvent append_event();
  void run_lane(queue::Run run, queue::Finish finish);
  void on_store_health(bool healthy);
  void die(const model::Error& error);
  void update_metrics();
  [[nodiscard]] bool ready();
  enum class Consumed : std::uint8_t { yes, nothing };
  [[nodiscard]] bool left_nothing(Consumed consumed) const;

  const config::Settings& settings;
  const model::Clock& clock;
  DataFolder folder;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<queue::KeyedAppend> stored_keys;  // outlives the log, which calls it back
  queue::KeyedAppend& keyed;
  std::unique_ptr<queue::Log> log;
  Metrics metrics;
  const api::ApiOptions options;

  api::Events events;
  api::AssetsCache assets;
  api::Authenticator authenticator;
  api::RateLimiter rate_limiter;
  api::InjectQuota quota;
  api::BusySessions busy;
  api::AnswerWaiters waiters;
  api::OutputWatch watch;
  api::JobWatch job_watch;
  api::BlockingPool pool;
  api::BlockingPool sign_ins;

  HttpClient webhooks;
  HttpClient upstreams;
  Deliverer deliverer;
  Caller caller;
  Scheduler scheduler;

  Recovery recovery;
  bool recovery_begun = false;  // from then on the store says that a daemon runs
  std::atomic<bool> consuming{false};
  std::atomic<bool> failed{false};
  std::atomic<queue::Pump*> pump_to_hold{nullptr};
  std::optional<TurnWorker> worker;
  std::unique_ptr<queue::Lanes> lanes;
  std::atomic<queue::Lanes*> lanes_to_touch{nullptr};
  std::unique_ptr<queue::Pump> pump;

  std::optional<api::Services> services;
  std::optional<api::Router> router;
  std::unique_ptr<api::HttpServer> server;
  std::unique_ptr<api::HttpServer> admin;
  LateLog late_log;
};

App::Parts::Parts(const config::Settings& all, const model::Clock& time, DataFolder locked,
                  Egress policy, api::JwtVerifier contact_center,
                  std::unique_ptr<store::Store> opened_store, OpenedLog opened_log)
    : settings(all),
      clock(time),
      folder(std::move(locked)),
      store(std::move(opened_store)),
      stored_keys(std::move(opened_log.stored_keys)),
      keyed(*opened_log.keyed),
      log(std::move(opened_log.log)),
      options(api_options(all, time.now())),
      events(*log, keyed),
      assets(store->assets()),
      authenticator(*store, time, lockout_limits(all.sign_in), std::move(contact_center)),
      rate_limiter(
          {.requests_per_second = all.limits.requests_per_second, .burst = all.limits.burst}),
      quota({.injects_per_month = all.quota.injects_per_month}, store->usage(), time),
      pool(management_threads, management_queue),
      sign_ins(sign_in_threads, sign_in_queue),
      webhooks(client_settings("webhooks", all.delivery.connections), policy),
      upstreams(client_settings("upstreams", all.calls.connections), std::move(policy)),
      deliverer(deliverer_settings(all.delivery), *store, webhooks, time, metrics),
      caller(caller_settings(all.calls), *store, upstreams, append_event(), time, metrics),
      scheduler({}, *store, append_event(), time, metrics),
      recovery(*store, time) {
  metrics.add_source([this] { update_metrics(); });
  store->jobs().on_change([this](const std::string& id) { job_watch.notify(id); });
}

AppendEvent App::Parts::append_event() {
  return [this](const model::Event& event, std::function<void(Result<queue::Appended>)> done) {
    events.append(event, std::move(done));
  };
}

ChainContext App::Parts::chain_context() {
  return {.sessions = store->sessions(),
          .outbox = store->outbox(),
          .answers = store->answers(),
          .dead_letters = store->dead_letters(),
          .attempts = store->attempts(),
          .assets = assets,
          .waiters = waiters,
          .clock = clock,
          .limits = flow_limits(settings.flows),
          .suspect_before = recovery.suspect_before()};
}

TurnPorts App::Parts::ports() {
  return {.deliver =
              [this](const model::SessionKey& key, std::vector<model::Output> outputs) {
                deliverer.offer(key, std::move(outputs));
              },
          .deliver_from_store =
              [this](const model::SessionKey& key) { deliverer.offer_from_store(key); },
          .call = [this](model::PendingCall call) { caller.offer(std::move(call)); },
          .timer = [this](model::PendingCall timer) { scheduler.offer(std::move(timer)); },
          .counted = [this](const std::string& organisation_id,
                            std::int64_t injects) { quota.committed(organisation_id, injects); },
          .fatal = [this](const model::Error& error) { die(error); },
          .ran =
              [this](std::chrono::steady_clock::duration took) {
                metrics.turn_seconds.observe(std::chrono::duration<double>(took).count());
              }};
}

// The log can't be consumed as it is: nothing may be dropped, so the daemon ends.
void App::Parts::die(const model::Error& error) {
  if (failed.exchange(true)) return;
  log::error("consumption has to stop", {{"error", error.message}});
  kill(getpid(), SIGTERM);
}

// While the store fails no Turn can be committed, so none is begun. Called on the Committer's
// thread.
void App::Parts::on_store_health(bool healthy) {
  if (healthy) {
    log::info("store works again");
  } else {
    log::error("store fails; trying again until it works");
  }
  if (queue::Pump* held = pump_to_hold.load(); held != nullptr) {
    healthy ? held->release() : held->hold();
  }
}

void App::Parts::run_lane(queue::Run run, queue::Finish finish) {
  worker->handle(std::move(run), std::move(finish), recovery.care(*lanes));
}

queue::LanesSettings App::Parts::lanes_settings(
    std::span<const queue::PartitionRange> ranges) const {
  queue::LanesSettings lanes_settings;
  lanes_settings.workers = settings.workers;
  lanes_settings.lane_limit = settings.limits.lane;
  lanes_settings.in_flight_limit = settings.limits.in_flight;
  lanes_settings.one_by_one_below = recovery.one_by_one_below(ranges, settings.limits.in_flight);
  return lanes_settings;
}

Result<void> App::Parts::start() {
  const auto ranges = checked_ranges(*log, *store);
  if (!ranges && !may_come_back(ranges.error())) return fail(ranges.error());

  store->committer().on_health([this](bool healthy) { on_store_health(healthy); });
  store->committer().start();
  if (auto begun = recovery.begin(); !begun) return fail(begun.error());
  recovery_begun = true;
  if (auto marked = store->mark_running(); !marked) return fail(marked.error());

  worker.emplace(chain_context(), store->committer(), watch, busy, ports());
  if (!ranges) events.hold();
  if (auto listening = start_listening(); !listening) return fail(listening.error());
  for (Service* service :
       std::initializer_list<Service*>{&webhooks, &upstreams, &deliverer, &caller, &scheduler}) {
    if (auto started = service->start(); !started) return fail(started.error());
  }
  if (ranges) return start_consuming(*ranges);
  log::warn("the log is not there; trying again until it is", {{"error", ranges.error().message}});
  late_log.start([this] { return checked_ranges(*log, *store); },
                 [this](const Result<LogRanges>& found) {
                   auto begun = found ? start_consuming(*found) : Result<void>(fail(found.error()));
                   if (!begun) die(begun.error());
                 });
  return {};
}

Result<void> App::Parts::start_listening() {
  services.emplace(api::Services{
      .options = options,
      .clock = clock,
      .store = *store,
      .log = *log,
      .events = events,
      .assets = assets,
      .authenticator = authenticator,
      .rate_limiter = rate_limiter,
      .quota = quota,
      .busy = busy,
      .waiters = waiters,
      .watch = watch,
      .job_watch = job_watch,
      .pool = pool,
      .sign_ins = sign_ins,
      .touch =
          [this](const model::SessionKey& key) {
            // Without lanes: all that waits is drained when there are some.
            if (auto* all = lanes_to_touch.load(); all != nullptr) all->touch(key.encode());
          },
      .deliver = [this](const model::SessionKey& key) { deliverer.offer_from_store(key); },
      .on_inject_answered =
          [this](int status, std::chrono::steady_clock::duration took) {
            metrics.inject_answered(status, took);
          }});
  router.emplace(api::all_operations(), *services);

  api::HttpSettings http = http_settings(settings);
  http.body_rule = [this](const api::Request& head) { return router->body_rule(head); };
  http.clock = &clock;
  http.on_defect = [](std::string_view message) { log::error("defect", {{"message", message}}); };
  auto opened =
      api::HttpServer::open(std::move(http), [this](api::Request&& request, api::Reply reply) {
        router->handle(std::move(request), std::move(reply));
      });
  if (!opened) return fail(opened.error());
  server = std::move(*opened);
  auto opened_admin = open_admin_server(
      settings.admin,
      {.ready = [this] { return ready(); }, .metrics = [this] { return metrics.expose(); }});
  if (!opened_admin) return fail(opened_admin.error());
  admin = std::move(*opened_admin);
  if (auto started = admin->start(); !started) return fail(started.error());
  if (auto started = server->start(); !started) return fail(started.error());
  log::info("listening", {{"address", settings.listen.address},
                          {"port", server->port()},
                          {"adminPort", admin->port()},
                          {"version", version}});
  return folder.write_ports(server->port(), admin->port());
}

Result<void> App::Parts::start_consuming(std::span<const queue::PartitionRange> ranges) {
  lanes = std::make_unique<queue::Lanes>(lanes_settings(ranges),
                                         [this](queue::Run&& run, queue::Finish finish) {
                                           run_lane(std::move(run), std::move(finish));
                                         });
  lanes_to_touch = lanes.get();
  events.release();
  queue::PumpSettings pump_settings;
  pump_settings.report = [](const queue::Error& error) {
    log::error("log can't be read; trying again", {{"error", error.message}});
  };
  if (auto drained = drain_inboxes(); !drained) return fail(drained.error());
  auto started = queue::Pump::start(pump_settings, *log, *lanes);
  if (!started) return fail(started.error());
  pump = std::move(*started);
  pump_to_hold = pump.get();
  consuming = true;
  log::info("ready", {{"dataDir", settings.data_dir.string()}, {"workers", settings.workers}});
  auto organisations = store->accounts().organisations();
  if (organisations && organisations->empty()) {
    log::warn("there is no organisation yet: stop the daemon and run `conversed init`");
  }
  return {};
}

// Sessions whose inbox was left when the last run ended go on; busy ones do when their call is
// answered. What was held for clients that are gone now takes the other way.
Result<void> App::Parts::drain_inboxes() {
  constexpr std::size_t all = 1'000'000;
  // Before any of them runs, so that no older figure replaces a newer one.
  auto sizes = store->sessions().inbox_sizes(all);
  if (!sizes) return fail(sizes.error());
  for (const auto& inbox : *sizes) busy.set(inbox.key, inbox.size);
  auto keys = store->sessions().to_drain(all);
  if (!keys) return fail(keys.error());
  for (const auto& key : *keys) lanes->touch(key.encode());
  return {};
}

bool App::Parts::ready() {
  return consuming.load() && store->committer().healthy() && log->health().has_value();
}

void App::Parts::update_metrics() {
  const auto& counts = worker->counts();
  for (const auto& [status, count] : server->answer_counts()) {
    metrics.requests(status).raise_to(count);
  }
  metrics.events_appended.raise_to(events.appended());
  metrics.turns.raise_to(counts.turns.load());
  metrics.turn_conflicts.raise_to(counts.conflicts.load());
  metrics.dead_letters.raise_to(counts.dead_letters.load());
  metrics.commits.raise_to(store->committer().transactions());
  metrics.committed_units.raise_to(store->committer().units());
  metrics.calls_in_flight.set(static_cast<double>(upstreams.in_flight()));
  metrics.store_healthy.set(store->committer().healthy() ? 1 : 0);
  metrics.log_healthy.set(log->health() ? 1 : 0);
  metrics.ready.set(ready() ? 1 : 0);
  // A log that is away is not asked.
  const auto ranges = log->health() ? log->ranges() : fail(model::Error());
  if (ranges) {
    std::int64_t lag = 0;
    for (const auto& range : *ranges) lag += range.end - range.committed;
    metrics.log_lag.set(static_cast<double>(lag));
  }
  if (auto pending = store->outbox().pending())
    metrics.deliveries_pending.set(static_cast<double>(*pending));
  if (auto waiting = store->dead_letters().count_new()) {
    metrics.dead_letters_waiting.set(static_cast<double>(*waiting));
  }
}

// Whether nothing is left that the next start would have to be careful with, provided that the runs
// in hand are finished. A start that failed before the log was consumed has changed nothing about
// what the stop before it left.
bool App::Parts::left_nothing(Consumed consumed) const {
  if (!recovery_begun) return false;
  return consumed == Consumed::yes ? recovery.done(*lanes) : !recovery.going_on();
}

void App::Parts::stop(milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const auto left = [&](milliseconds keep_back) {
    const auto rest =
        std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(rest - keep_back, milliseconds(100));
  };
  late_log.stop();
  const auto consumed = consuming.exchange(false) ? Consumed::yes : Consumed::nothing;
  bool answered = true;
  if (server) {
    watch.stop();
    job_watch.stop();
    answered = server->drain(left(std::min(reserved_for_commits, limit / 2)));
  }
  scheduler.stop();
  caller.stop();
  const bool finished = pump ? pump->stop(left(limit / 5)) : !lanes || lanes->stop(left(limit / 5));
  // While the store fails, whoever waits for a write would wait for ever: runs in hand, operators'
  // requests, marks of deliveries.
  store->committer().stop_retrying();
  if (!finished) store->committer().stop();
  // Not before: a Turn in hand may hold an answer that goes to nobody else.
  waiters.stop();
  if (server) {
    if (!answered)
      (void)server->drain(milliseconds(200));  // those that have just been answered 503
    server->stop();
  }
  sign_ins.stop();
  pool.stop();
  pump_to_hold = nullptr;
  if (worker) worker->stop();
  deliverer.stop();
  upstreams.stop();
  webhooks.stop();
  log->stop();
  // Runs that could not be committed stay unfinished in the log; the next start is careful with
  // them.
  if (finished && left_nothing(consumed)) {
    if (auto marked = store->mark_clean_stop(); !marked) {
      log::warn("the stop can't be marked as clean", {{"error", marked.error().message}});
    }
  } else {
    store->committer().stop();
  }
  if (admin) admin->stop();
  folder.remove_ports();
}

App::App(config::Settings settings, const model::Clock& clock)
    : settings_(std::move(settings)), clock_(clock) {}

App::~App() {
  stop();
}

Result<void> App::start() {
  auto folder = DataFolder::open(settings_.data_dir);
  if (!folder) return fail(folder.error());
  auto egress = Egress::create(settings_.egress.allow);
  if (!egress) return fail(egress.error());
  auto contact_center = api::JwtVerifier::open(settings_.contact_center, log_key_file);
  if (!contact_center) return fail(contact_center.error());
  auto store = open_store(settings_, clock_);
  if (!store) return fail(store.error());
  auto log = open_log(settings_, **store, clock_);
  if (!log) return fail(log.error());
  parts_ = std::make_unique<Parts>(settings_, clock_, std::move(*folder), std::move(*egress),
                                   std::move(*contact_center), std::move(*store), std::move(*log));
  auto started = parts_->start();
  if (!started) stop();
  return started;
}

void App::stop() {
  if (!parts_) return;
  log::info("stopping");
  parts_->stop(settings_.shutdown_timeout);
  failed_ = parts_->failed.load();
  parts_.reset();
  log::info("stopped");
}

bool App::failed() const {
  return failed_ || (parts_ && parts_->failed.load());
}

}  // namespace conversed::daemon
