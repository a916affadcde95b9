#include "daemon/app.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "config/warnings.h"
#include "daemon/app_parts.h"
#include "daemon/ops/logging.h"
#include "daemon/part_settings.h"
#include "daemon/reload.h"
#include "daemon/reports.h"
#include "daemon/turns/lane_share.h"

namespace conversed::daemon {

using model::fail;
using model::Result;
using std::chrono::milliseconds;

namespace {

// Of the time for a stop, what is kept back for the steps after the answers: Turns in hand,
// deliveries, the store.
constexpr milliseconds reserved_for_commits{6'000};

auto given_up() {
  return fail(model::Errc::unavailable, "the start was given up");
}

}  // namespace

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
    log::error("store fails; trying again until it works",
               {{"error", store->committer().last_failure()}});
  }
  if (queue::Pump* held = pump_to_hold.load(); held != nullptr) {
    healthy ? held->release() : held->hold();
  }
}

Result<void> App::Parts::start() {
  const auto ranges = checked_ranges(*log, *store);
  if (!ranges && !may_come_back(ranges.error())) return fail(ranges.error());

  store->committer().on_health([this](bool healthy) { on_store_health(healthy); });
  store->committer().start();
  if (!ranges) events.hold();
  // Before anything is done under the name: it may be another one's, and so are its answers.
  if (auto joined = join_peers(); !joined) return fail(joined.error());
  if (auto listening = start_listening(); !listening) return fail(listening.error());
  if (auto started = start_services(); !started) return fail(started.error());
  if (ranges) return begin(*ranges);
  log::warn("the log is not there; trying again until it is", {{"error", ranges.error().message}});
  late_log.start([this] { return checked_ranges(*log, *store); },
                 [this](const Result<LogRanges>& found) {
                   auto begun = found ? begin(*found) : Result<void>(fail(found.error()));
                   if (!begun) die(begun.error());
                 });
  return {};
}

Result<void> App::Parts::start_consuming(std::span<const queue::PartitionRange> ranges) {
  if (auto forgotten = store->forget_writers(); !forgotten) {
    log::warn("marks of daemons that are gone can't be removed",
              {{"error", forgotten.error().message}});
  }
  if (auto taken = ownership.is_shared() ? share_log(ranges) : take_up_log(ranges); !taken) {
    return fail(taken.error());
  }
  worker.emplace(turn_batch_context(ranges.size()), store->committer(), watch, busy, ports(),
                 recorder.get(), &heartbeats);
  auto lane_settings = lanes_settings(settings, heartbeats);
  if (ownership.is_shared()) lane_settings.partitions = static_cast<std::int32_t>(ranges.size());
  lane_settings.share_of = [this](const std::string& key) { return share_of(assets, key); };
  lanes = std::make_unique<queue::Lanes>(std::move(lane_settings),
                                         [this](queue::Run&& run, queue::Finish finish) {
                                           worker->handle(std::move(run), std::move(finish));
                                         });
  lanes_to_touch = lanes.get();
  events.release();
  queue::PumpSettings pump_settings;
  pump_settings.heartbeats = &heartbeats;
  pump_settings.report = [](const queue::Error& error) {
    log::error("log can't be read; trying again", {{"error", error.message}});
  };
  pump_settings.broken = [this](const queue::Error& error) { die(error); };
  if (ownership.is_shared()) {
    pump_settings.owner = &partitions;
    if (auto looks = partitions.start(); !looks) return fail(looks.error());
  } else if (auto drained = drain_inboxes(); !drained) {
    return fail(drained.error());
  }
  auto started = queue::Pump::start(pump_settings, *log, *lanes);
  if (!started) return fail(started.error());
  pump = std::move(*started);
  pump_to_hold = pump.get();
  consuming = true;
  log::info("ready", {{"dataDir", settings.data_dir.string()}, {"workers", settings.workers}});
  supervisor.consuming();
  warn_without_organisation();
  return {};
}

void App::Parts::warn_without_organisation() {
  auto organisations = store->accounts().organisations();
  if (organisations && organisations->empty()) {
    log::warn("there is no organisation yet: stop the daemon and run `conversed init`");
  }
}

// Of a daemon that reads the whole log. It does without the recorder if it has to.
Result<void> App::Parts::take_up_log(std::span<const queue::PartitionRange> ranges) {
  const auto file = flight_recorder_file(settings.data_dir);
  if (auto opened = FlightRecorder::open(file, boot_id())) {
    recorder = std::move(*opened);
  } else {
    log::warn("crashes can't be attributed to events", {{"error", opened.error().message}});
  }
  return recovery.begin(recorder.get(), ranges);
}

// Of one that reads some partitions of it, which it takes up as they come.
Result<void> App::Parts::share_log(std::span<const queue::PartitionRange> ranges) {
  ownership.begin(static_cast<std::int32_t>(ranges.size()));
  recovery.begin_run(peers->run());
  sharing = true;
  return {};
}

// Sessions whose inbox was left when the last run ended go on; busy ones do when their call is
// answered.
Result<void> App::Parts::drain_inboxes() {
  auto keys = waiting_sessions(*store, busy, [](const model::SessionKey&) { return true; });
  if (!keys) return fail(keys.error());
  for (auto& key : *keys) lanes->touch(std::move(key));
  return {};
}

// Runs that could not be committed stay unfinished in the log. Those of partitions that are shared
// were in hand, as far as the next owner can know.
void App::Parts::give_up_log(bool finished) {
  if (!finished || !sharing) return;
  if (auto told = recovery.stopped(); !told) {
    log::warn("the stop can't be marked as clean", {{"error", told.error().message}});
  }
}

std::string_view App::Parts::not_ready() const {
  if (!store->healthy()) return "the store fails";
  if (!log->health()) return "the log fails";
  return consuming.load() ? "" : "the log is not consumed yet";
}

// Nothing here waits for the store, or for a loop that may stand still.
Progress App::Parts::progress() {
  Progress now;
  now.appended = events.appended();
  now.delivered = metrics.deliveries(DeliveryOutcome::delivered).value();
  now.consuming = consuming.load();
  now.store_healthy = store->healthy();
  now.log_healthy = log->health().has_value();
  // What `start_consuming` sets is there once it has set `consuming`.
  if (!now.consuming || !worker) return now;
  now.turns = worker->counts().turns.load();
  now.in_flight = lanes->in_flight();
  return now;
}

void App::Parts::stop(milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const auto left = [&](milliseconds keep_back) {
    const auto rest =
        std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(rest - keep_back, milliseconds(100));
  };
  supervisor.stopping(limit);
  supervisor.stop();
  // Whoever is about to consume may wait for a store that fails, and there is nothing to drain yet.
  if (!consuming.load()) store->committer().stop_retrying();
  late_log.stop();
  backups.stop();
  consuming = false;
  bool answered = true;
  if (door.has_api()) {
    watch.stop();
    job_watch.stop();
    answered = door.drain(left(std::min(reserved_for_commits, limit / 2)));
  }
  scheduler.stop();
  if (peers) peers->retire();
  caller.stop();
  partitions.stop();
  const bool finished = pump ? pump->stop(left(limit / 5)) : !lanes || lanes->stop(left(limit / 5));
  // Not before: a Turn in hand may have the answer. All other clients get what was said so far.
  pending_replies.cut_off();
  // While the store fails, whoever waits for a write would wait for ever: runs in hand, operators'
  // requests, marks of deliveries.
  store->committer().stop_retrying();
  if (!finished) store->committer().stop();
  if (job_queue) job_queue->stop();
  job_worker.stop();
  housekeeper.stop();
  if (!answered) answered = door.drain(milliseconds(500));
  pending_replies.stop();
  heard_answers = {};
  heard_sessions = {};
  if (!answered) (void)door.drain(milliseconds(200));  // those that have just been answered 503
  door.stop_api();
  sign_ins.stop();
  pool.stop();
  imports.stop();
  pump_to_hold = nullptr;
  if (worker) worker->stop();
  deliverer.stop();
  upstreams.stop();
  webhooks.stop();
  log->stop();
  give_up_log(finished);
  if (peers) peers->stop();
  // Before anything goes that its callbacks refer to.
  store->committer().stop();
  door.stop();
}

App::App(config::Settings settings, const model::Clock& clock)
    : settings_(std::move(settings)),
      clock_(clock),
      timer_clock_(clock),
      supervisor_(ServiceManager(), heartbeats_, [this] { return progress(); }) {}

App::~App() {
  stop();
}

Progress App::progress() {
  if (Parts* parts = watched_.load(); parts != nullptr) return parts->progress();
  Progress now;
  now.waits_for = store_away_
                      ? "PostgreSQL is not there, see the log; it is tried again until it is"
                      : "the store is opened; one of an older version is copied and migrated first";
  return now;
}

Result<void> App::start() {
  // First of all: copying and migrating a large store takes longer than a start may without a word.
  if (auto watched = supervisor_.start(); !watched) return watched;
  auto started = open_and_start();
  {
    const std::lock_guard lock(starting_);
    started_ = true;
  }
  if (!started) stop();
  return started;
}

Result<void> App::open_and_start() {
  auto folder = DataFolder::open(settings_.data_dir);
  if (!folder) return fail(folder.error());
  auto egress = Egress::create(settings_.egress.allow);
  if (!egress) return fail(egress.error());
  for (const auto& warning : config::warnings_of(settings_)) {
    log::warn("a setting is seldom meant so", {{"warning", warning}});
  }
  auto contact_center = api::JwtVerifier::open(settings_.contact_center, log_key_file);
  if (!contact_center) return fail(contact_center.error());
  door_.emplace(settings_, clock_, heartbeats_, std::move(*folder));
  auto store = wait_for_store();
  if (!store) return fail(store.error());
  auto log = open_log(settings_, **store, timer_clock_);
  if (!log) return fail(log.error());
  {
    const std::lock_guard lock(starting_);
    parts_ = std::make_unique<Parts>(
        settings_, clock_, Parts::Before{heartbeats_, supervisor_, *door_, timer_clock_},
        std::move(*egress), std::move(*contact_center), std::move(*store), std::move(*log));
  }
  watched_ = parts_.get();
  if (given_up_.stop_requested()) return given_up();
  return parts_->start();
}

// PostgreSQL may be away for a while: until it is there the daemon listens, and refuses.
Result<std::unique_ptr<store::Store>> App::wait_for_store() {
  const auto waiting = given_up_.get_token();
  std::string reported;
  do {
    auto heartbeat = heartbeats_.add("start");
    const auto go_on = [&] {
      heartbeat.beat();
      return !waiting.stop_requested();
    };
    auto store =
        open_store(settings_, clock_, store::PostgresSettings::Place::shared, go_on, &timer_clock_);
    // Before anything goes by it. Of several daemons all follow the server's clock.
    if (store && !in_cluster(settings_)) {
      const auto kept = (*store)->timers().offset();
      if (!kept) return fail(kept.error());
      timer_clock_.set_offset(*kept);
    }
    const bool waits = in_cluster(settings_) && !store && may_come_back(store.error());
    if (!waits || waiting.stop_requested()) return store;
    if (auto listening = door_->listen(); !listening) return fail(listening.error());
    store_away_ = true;
    if (reported != store.error().message) {
      reported = store.error().message;
      log::error("the store is not there; trying again until it is", {{"error", reported}});
    }
  } while (wait_a_while(waiting));
  return given_up();
}

void App::give_up_start() {
  const std::lock_guard lock(starting_);
  if (started_) return;
  given_up_.request_stop();
  // Whoever waits until the store works does so no longer.
  if (parts_) parts_->store->committer().stop_retrying();
}

void App::reload(const std::function<std::optional<config::Settings>()>& read) {
  if (!parts_) return;
  supervisor_.reloading();
  const auto wanted = read();
  if (!wanted) {
    return supervisor_.reloaded("New settings refused, see the log; the old ones stay");
  }
  const auto reloaded = config::reload(settings_, *wanted);
  supervisor_.reloaded(reload_parts(settings_, reloaded,
                                    {.rate_limiter = parts_->rate_limiter,
                                     .public_limiter = parts_->public_limiter,
                                     .injects = parts_->quota,
                                     .quota = parts_->options.quota,
                                     .webhooks = parts_->webhooks,
                                     .upstreams = parts_->upstreams}));
}

void App::stop() {
  if (!parts_) {
    supervisor_.stop();
    return door_.reset();
  }
  log::info("stopping");
  parts_->stop(settings_.shutdown_timeout);
  watched_ = nullptr;  // by nobody: the Supervisor has stopped
  failed_ = parts_->failed.load();
  parts_.reset();
  door_.reset();
  log::info("stopped");
}

bool App::failed() const {
  return failed_ || (parts_ && parts_->failed.load());
}

}  // namespace conversed::daemon
