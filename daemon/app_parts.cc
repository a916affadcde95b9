#include "daemon/app_parts.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>

#include "daemon/ops/logging.h"
#include "store/shards/across_shards.h"

namespace conversed::daemon {

using config::Role;
using model::fail;
using model::Reason;
using model::Result;
using std::chrono::milliseconds;

namespace {

// The part of the time for a stop that is reserved for the steps after the answers: Turns in hand,
// deliveries, the store.
constexpr milliseconds reserved_for_commits{6'000};

}  // namespace

Ground::Ground(const Outside& outside, std::unique_ptr<store::Store> opened_store,
               OpenedLog& opened_log)
    : Outside(outside),
      store(std::move(opened_store)),
      stored_keys(std::move(opened_log.stored_keys)),
      log(std::move(opened_log.log)),
      events(*log, *opened_log.keyed, member_name(settings)),
      metrics(door.metrics()) {}

bool Ground::has(config::Role role) const {
  return std::ranges::find(settings.roles, role) != settings.roles.end();
}

AppendEvent Ground::append_event() {
  return [this](model::Event event, std::function<void(model::Result<queue::Appended>)> done) {
    events.append(std::move(event), std::move(done));
  };
}

void Ground::die(const model::Error& error) {
  if (failed.exchange(true)) return;
  log::error("consumption has to stop", {{"error", error.message}});
  kill(getpid(), SIGTERM);
}

App::Parts::Parts(const Outside& outside, Egress policy, api::JwtVerifier contact_center,
                  std::unique_ptr<store::Store> opened_store, OpenedLog opened_log)
    : ground(outside, std::move(opened_store), opened_log),
      live(ground),
      cluster(ground, live, cluster_ports()),
      outbound(ground, cluster.ownership, std::move(policy),
               {.backlog = [this] { return turns.records_in_flight(); }, .mine = cluster.mine()}),
      front(ground, live, outbound.schedule_clock, std::move(contact_center), opened_log.embedded),
      turns(ground, live, cluster.ownership, turn_effects(),
            [this] { outbound.ownership_changed(); }),
      sampler(ground.metrics, ground.clock, live.history),
      store_failing_since(ground.store->shards().size()) {
  connect_operations();
  cluster.hear(live);
  ground.store->jobs().on_change([this](const std::string& id) {
    live.watch.notify(id);
    if (ground.has(Role::worker)) outbound.job_worker.offer(id);
  });
}

ClusterPorts App::Parts::cluster_ports() {
  return {
      .daemons_changed =
          [this] { outbound.for_each([](ShardServices& shard) { shard.scheduler.look_again(); }); },
      .each_second =
          [this] {
            turns.look_at_lag();
            if (layout_changed.exchange(false)) take_layout();
            if (ground.store->shards().size() > 1) turns.look_at_shards();
          },
      .touch = [this](const model::SessionKey& key) { turns.touch(key); },
      .deliver =
          [this](const model::SessionKey& key) { outbound.of(key).deliverer.offer_earlier(key); },
      .retry = [this](const model::SessionKey& key) { outbound.of(key).deliverer.retry(key); },
      .resume =
          [this](const std::string& endpoint_id) {
            if (ground.has(Role::worker)) outbound.resume(endpoint_id);
          },
      .forget_sessions = [this] { turns.forget_sessions(); },
      .layout_changed = [this] { layout_changed = true; }};
}

// If the store fails, the next second asks again.
void App::Parts::take_layout() {
  if (auto read = ground.store->layout().read(); !read) {
    // A daemon that does not know a server can't go on.
    if (read.error().code == model::Errc::conflict) return ground.die(read.error());
    layout_changed = true;
    log::warn("the partitions of the store's servers can't be read",
              {{"error", read.error().message}});
  }
}

void App::Parts::connect_operations() {
  api::SessionServices& sessions = front.services.sessions;
  sessions.touch = [this](const model::SessionKey& key) { turns.touch(key); };
  sessions.forget = [this] { turns.forget_sessions(); };
  // Without the role no thread reads the Deliverer's mailbox.
  if (ground.has(Role::worker)) {
    sessions.deliver = [this](const model::SessionKey& key) {
      outbound.of(key).deliverer.offer_earlier(key);
    };
    sessions.delivery_rate = [this](const std::string& endpoint_id) {
      api::DeliveryRate rate;
      outbound.for_each([&](ShardServices& shard) {
        const auto count = shard.deliverer.recent_posts(endpoint_id);
        rate.time = std::max(rate.time, count.time);
        rate.posts += count.posts;
        rate.failed += count.failed;
      });
      return rate;
    };
    front.services.projects.delivery_rate = sessions.delivery_rate;
  }
  // In a cluster the store's notifications reach this daemon, too.
  if (!cluster.is_shared()) {
    sessions.retry = [this](const model::SessionKey& key) {
      outbound.of(key).deliverer.retry(key);
    };
    sessions.resume_endpoint = [this](const std::string& id) { outbound.resume(id); };
  }
  sessions.schedule = [this](const model::Schedule& waits) {
    outbound.of(waits.session).scheduler.offer(waits);
  };
  // A scheduler without a due timer only looks.
  sessions.timer = [this](model::Timestamp due) {
    outbound.for_each([due](ShardServices& shard) { shard.scheduler.offer(due); });
  };
  front.services.daemon.members = [this] { return cluster.members(); };
  front.reasons.connect(reason_ports());
}

api::ReasonPorts App::Parts::reason_ports() {
  api::ReasonPorts ports;
  // Without the role no thread would answer.
  if (ground.has(Role::worker)) {
    ports.sending = [this](const auto& keys) {
      std::vector<api::SendingView> views;
      for (const auto& each : outbound.sending(keys)) {
        views.push_back({each.since, each.not_before});
      }
      return views;
    };
    ports.calling_since = [this](const auto& id) { return outbound.calling_since(id); };
  }
  ports.waits_for_share = [this](const auto& key) { return turns.waits_for_share(key); };
  ports.partition = [this](const auto& key) -> std::optional<api::PartitionView> {
    const auto count = partitions.load();
    if (!cluster.is_shared() || count == 0) return std::nullopt;
    const auto number = queue::partition_of(key.encode(), count);
    for (const auto& member : cluster.members()) {
      if (std::ranges::find(member.partitions, number) != member.partitions.end()) {
        return api::PartitionView{number, member.name};
      }
    }
    return api::PartitionView{number, ""};
  };
  ports.quota_used_up = [this](const std::string& organisation) {
    const auto limit = front.options.quota.get().injects_per_month;
    if (limit == 0) return false;
    const auto month = store::month_of(ground.clock.now());
    const auto used = ground.store->usage().used(organisation, store::injects_counter, month);
    return used && static_cast<std::uint64_t>(*used) >= limit;
  };
  ports.store_failing_since = [this] { return store_failing(); };
  ports.log_failing_since = [this] { return log_failing(); };
  return ports;
}

TurnPorts App::Parts::turn_effects() {
  TurnPorts effects;
  effects.deliver = [this](const store::SessionCommit& commit, bool older_are_known) {
    outbound.of(commit.key).deliverer.offer(commit, older_are_known);
  };
  effects.call = [this](const model::SessionKey& key, const std::string& target) {
    outbound.of(key).caller.offer(key.project_id, target);
  };
  effects.timer = [this](const model::SessionKey& key, model::Timestamp due) {
    outbound.of(key).scheduler.offer(due);
  };
  effects.schedule = [this](const model::Schedule& waits) {
    outbound.of(waits.session).scheduler.offer(waits);
  };
  effects.ramp_failed = [this] { outbound.ramp_guard.look(); };
  return effects;
}

// Called on the shard's Committer's thread.
void App::Parts::on_store_health(std::size_t shard, bool healthy) {
  store_failing_since.at(shard) = healthy ? model::Timestamp() : ground.clock.now();
  if (healthy) {
    log::info("store works again", {{"shard", shard}});
  } else {
    const auto& committer = ground.store->shards().at(shard)->committer();
    log::error("store fails; trying again until it works",
               {{"shard", shard}, {"error", committer.last_failure()}});
  }
  turns.look_at_shards();
}

std::optional<model::Timestamp> App::Parts::store_failing() const {
  std::optional<model::Timestamp> first;
  for (const auto& each : store_failing_since) {
    const auto since = each.load();
    if (since != model::Timestamp()) store::take_older(first, since);
  }
  return first;
}

Result<void> App::Parts::start() {
  const auto look = [this] { return checked_ranges(*ground.log, *ground.store); };
  const auto ranges = look();
  // Without a layout nobody knows which server has a session.
  const auto can_wait = [&] {
    return may_come_back(ranges.error()) && ground.store->layout().is_settled();
  };
  if (!ranges && !can_wait()) return fail(ranges.error());

  const auto& shards = ground.store->shards();
  for (std::size_t at = 0; at < shards.size(); ++at) {
    store::Committer& committer = shards[at]->committer();
    committer.on_health([this, at](bool healthy) { on_store_health(at, healthy); });
    committer.start();
    if (!committer.healthy()) on_store_health(at, false);  // it was away at the start
  }
  if (!ranges) ground.events.hold();
  // Joins before anything uses this daemon's name. The name, and the answers under it, may belong
  // to another live daemon.
  if (auto joined = cluster.start(); !joined) return joined;
  if (auto listening = start_listening(); !listening) return listening;
  if (auto started = outbound.start(); !started) return started;
  if (ranges) return begin(*ranges);
  log::warn("the log is not there; trying again until it is", {{"error", ranges.error().message}});
  late_log = look_for_log(look, [this](const Result<LogRanges>& found) {
    auto begun = found ? begin(*found) : Result<void>(fail(found.error()));
    if (!begun) ground.die(begun.error());
  });
  return {};
}

Result<void> App::Parts::start_listening() {
  if (auto listening = ground.door.listen(); !listening) return listening;
  ground.metrics.add_source([this] { update_metrics(); });
  sampler.start();
  ground.door.open(front.services, [this] { return not_ready(); });
  return {};
}

Result<void> App::Parts::begin(std::span<const queue::PartitionRange> ranges) {
  const config::Settings& settings = ground.settings;
  const std::string folder = settings.data_dir.string();
  partitions = static_cast<std::int32_t>(ranges.size());
  if (ground.has(Role::worker)) {
    const std::string run = cluster.peers ? cluster.peers->run() : std::string();
    if (auto started = turns.start(ranges, run); !started) return started;
    ground.consuming = true;
    log::info("ready", {{"dataDir", folder}, {"workers", settings.workers}});
  } else {
    ground.events.release();
    ground.consuming = true;
    log::info("ready", {{"dataDir", folder}});
  }
  ground.supervisor.consuming();
  const auto organisations = ground.store->accounts().organisations();
  if (organisations && organisations->empty()) {
    log::warn("there is no organisation yet: stop the daemon and run `conversed init`");
  }
  return {};
}

std::string_view App::Parts::not_ready() const {
  if (!ground.store->first().healthy()) return "the store fails";
  if (!ground.log->health()) return "the log fails";
  return ground.consuming.load() ? "" : "the log is not consumed yet";
}

std::optional<model::Timestamp> App::Parts::log_failing() {
  if (ground.log->health()) {
    log_failing_since = model::Timestamp();
    return std::nullopt;
  }
  model::Timestamp since{};
  const auto now = ground.clock.now();
  return log_failing_since.compare_exchange_strong(since, now) ? now : since;
}

// Must not wait for the store, or for a loop that may stand still.
Progress App::Parts::progress() {
  Progress now;
  now.appended = ground.events.appended();
  now.delivered = ground.metrics.deliveries(DeliveryOutcome::delivered).value();
  now.consuming = ground.consuming.load();
  now.store_healthy = ground.store->first().healthy();
  now.log_healthy = !log_failing();
  now.turns = ground.metrics.turns.value();
  if (ground.has(Role::worker)) now.in_flight = turns.records_in_flight();
  return now;
}

void App::Parts::update_metrics() {
  Metrics& metrics = ground.metrics;
  metrics.events_appended.raise_to(ground.events.appended());
  const store::Shards& shards = ground.store->shards();
  std::uint64_t transactions = 0;
  std::uint64_t commits = 0;
  bool all_healthy = true;
  for (const auto& shard : shards) {
    transactions += shard->committer().transactions();
    commits += shard->committer().commits();
    all_healthy &= shard->committer().healthy();
  }
  metrics.commits.raise_to(transactions);
  metrics.session_commits.raise_to(commits);
  metrics.calls_in_flight.set(static_cast<double>(outbound.upstreams.in_flight()));
  metrics.store_healthy.set(all_healthy ? 1 : 0);
  metrics.log_healthy.set(ground.log->health() ? 1 : 0);
  metrics.ready.set(not_ready().empty() ? 1 : 0);
  // A metric that can't be read keeps its value. A log that is away is not asked.
  const auto ranges = ground.log->health() ? ground.log->ranges() : fail(model::Error());
  if (ranges) metrics.log_lag.set(static_cast<double>(queue::lag_of(*ranges)));
  if (const auto backlog = store::read_backlog(shards)) {
    metrics.deliveries_pending.set(static_cast<double>(backlog->deliveries));
    metrics.dead_letters_waiting.set(static_cast<double>(backlog->dead_letters));
    show_oldest(*backlog);
  }
  const auto now = ground.clock.now();
  show_waiting(Reason::store_down, store_failing(), now);
  show_waiting(Reason::log_down, log_failing(), now);
}

// Only reasons whose oldest case is found at once.
void App::Parts::show_oldest(const store::Backlog& backlog) {
  const auto by_timers = ground.timer_clock.now();
  show_waiting(Reason::delivery_failing, backlog.failing_endpoint, by_timers);
  show_waiting(Reason::endpoint_paused, backlog.paused_endpoint, by_timers);
  const auto now = ground.clock.now();
  show_waiting(Reason::dead_letter, backlog.dead_letter, now);
  show_waiting(Reason::behind_events, backlog.inbox_event, now);
  show_waiting(Reason::behind_jobs, backlog.queued_job, now);
}

void App::Parts::show_waiting(Reason reason, std::optional<model::Timestamp> since,
                              model::Timestamp now) {
  const std::chrono::duration<double> age = since ? now - *since : milliseconds(0);
  ground.metrics.waiting_seconds(model::info_of(reason).name).set(std::max(0.0, age.count()));
}

void App::Parts::take_settings() {
  const config::Settings& settings = ground.settings;
  log::open(settings.log);
  live.take_limits(settings);
  front.options.quota.set(settings.quota);
  // The loader has checked each entry. If one is still invalid, the policy stays as it is.
  if (auto egress = Egress::create(settings.egress.allow)) {
    outbound.webhooks.set_egress(*egress);
    outbound.upstreams.set_egress(std::move(*egress));
  } else {
    log::error("egress.allow can't be used", {{"error", egress.error().message}});
  }
}

void App::Parts::stop(milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const auto left = [&](milliseconds keep_back) {
    const auto rest =
        std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(rest - keep_back, milliseconds(100));
  };
  store::Store& store = *ground.store;
  ground.supervisor.stopping(limit);
  ground.supervisor.stop();
  sampler.request_stop();
  // There is nothing to drain yet, and a start that waits for a failing store must end.
  if (!ground.consuming.load()) store.stop_retrying();
  late_log = {};  // requests its stop, and joins it
  front.backups.stop();
  ground.consuming = false;
  const bool answered = front.drain(left(std::min(reserved_for_commits, limit / 2)));
  outbound.for_each([](ShardServices& shard) { shard.scheduler.stop(); });
  if (cluster.peers) cluster.peers->retire();
  outbound.for_each([](ShardServices& shard) { shard.caller.stop(); });
  turns.stop_looking();
  const bool drained = turns.drain(left(limit / 5));
  // Comes after the Turns in hand, because these may produce the answers. All other clients get the
  // outputs so far.
  live.pending_replies.cut_off();
  // While the store fails, no wait for a write would end. Runs in hand, operators' requests and the
  // marks of deliveries wait for writes.
  store.stop_retrying();
  if (!drained) store.stop_commits();
  outbound.stop_jobs();
  front.stop(answered);
  cluster.stop_hearing();
  turns.stop();
  outbound.stop();
  ground.log->stop();
  turns.mark_clean_stop(drained);
  cluster.stop();
  // Stops before the destruction of the objects that its callbacks use.
  store.stop_commits();
  sampler.stop();
  ground.door.stop();
}

}  // namespace conversed::daemon
