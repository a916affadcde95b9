// What a daemon does of all there is to do: by its roles, and beside others on the same store.
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "daemon/app_parts.h"
#include "daemon/ops/logging.h"
#include "daemon/part_settings.h"
#include "store/cluster/session_notifications.h"

namespace conversed::daemon {

using config::Role;
using model::fail;
using model::Result;

bool App::Parts::has(Role role) const {
  return std::ranges::find(settings.roles, role) != settings.roles.end();
}

// All daemons hear of it; the session is one's.
void App::Parts::touch_lane(const model::SessionKey& key) {
  if (!ownership.owns(key)) return;
  // Without lanes: all that waits is drained when there are some.
  if (auto* all = lanes_to_touch.load(); all != nullptr) all->touch(key.encode());
}

// What was missed of sessions is found by the looks of PartitionKeeper and Deliverer.
void App::Parts::hear_session(std::string_view payload) {
  const auto notification = store::session_notification_from(payload);
  if (!notification) return;
  const auto key = model::SessionKey::decode(notification->session);
  if (!key) return;
  if (notification->kind == store::SessionNotification::Kind::touch) return touch_lane(*key);
  deliverer.offer_earlier(*key);
}

void App::Parts::hear_others() {
  if (!in_cluster(settings)) return;
  auto& notifications = store->notifications();
  const auto subscribe = [&](std::string_view topic, store::Notifications::Heard heard) {
    return notifications.subscribe(std::string(topic), std::move(heard));
  };
  heard_answers = subscribe(store::answers_topic,
                            [this](std::string_view inputs) { pending_replies.heard(inputs); });
  heard_sessions =
      subscribe(store::sessions_topic, [this](std::string_view payload) { hear_session(payload); });
  heard_outputs =
      subscribe(store::outputs_topic, [this](std::string_view sessions) { watch.heard(sessions); });
  heard_jobs = subscribe(store::jobs_topic, [this](std::string_view id) {
    id.empty() ? job_watch.notify_all() : job_watch.notify(std::string(id));
  });
}

std::unique_ptr<SharedLimits> App::Parts::make_shared_limits() {
  if (!in_cluster(settings)) return nullptr;
  return std::make_unique<SharedLimits>(
      SharedLimitsSettings{.daemon = member_name(settings),
                           .inbox_limit = static_cast<std::int64_t>(settings.limits.inbox)},
      *store, rate_limiter, public_limiter, busy, quota);
}

std::unique_ptr<Peers> App::Parts::make_peers() {
  if (!in_cluster(settings)) return nullptr;
  auto with = peers_settings(settings, door.folder().last_run());
  with.changed = [this] { scheduler.look_again(); };
  with.also = [this] {
    shared_limits->tell();
    door.write_ports();
    look_at_lag();
  };
  with.partitions = [this] { return ownership.partitions(); };
  with.replaced = [this](const model::Error& error) { die(error); };
  return std::make_unique<Peers>(std::move(with), *store, timer_clock);
}

// Of a daemon that reads nothing itself: how much stands before what its scheduler appends.
void App::Parts::look_at_lag() {
  if (has(Role::worker) || !has(Role::scheduler) || !consuming.load()) return;
  const auto ranges = log->ranges();
  if (ranges) lag_elsewhere = static_cast<std::size_t>(queue::lag_of(*ranges));
}

SchedulerSettings App::Parts::scheduler_settings() {
  SchedulerSettings scheduling;
  scheduling.backlog = [this] { return records_in_flight(); };
  scheduling.timer_clock = &timer_clock;
  scheduling.heartbeats = &heartbeats;
  if (peers) scheduling.mine = [this](std::string_view id) { return peers->mine(id); };
  return scheduling;
}

HousekeeperSettings App::Parts::tidying() {
  if (!peers) return housekeeper_settings(settings, [this] { door.write_ports(); });
  auto tidying = housekeeper_settings(settings, {});
  tidying.mine = [this] { return peers->mine("housekeeper"); };
  return tidying;
}

Result<void> App::Parts::join_peers() {
  if (!peers) return {};
  if (auto joined = peers->start(); !joined) return joined;
  // The next start waits a little without it.
  if (auto noted = door.folder().write_run(peers->run()); !noted) {
    log::warn("the next start can't know this run", {{"error", noted.error().message}});
  }
  return {};
}

Result<void> App::Parts::start_services() {
  std::vector<Service*> services_of_roles;
  if (has(Role::worker)) services_of_roles = {&webhooks, &upstreams, &deliverer, &caller};
  if (has(Role::scheduler)) services_of_roles.push_back(&scheduler);
  if (has(Role::worker)) services_of_roles.push_back(&job_worker);
  if (job_queue) services_of_roles.push_back(&*job_queue);
  if (has(Role::scheduler)) services_of_roles.push_back(&housekeeper);
  for (Service* service : services_of_roles) {
    if (auto started = service->start(); !started) return fail(started.error());
  }
  return {};
}

// The log is there, and is the store's.
Result<void> App::Parts::begin(std::span<const queue::PartitionRange> ranges) {
  if (has(Role::worker)) return start_consuming(ranges);
  events.release();
  consuming = true;
  log::info("ready", {{"dataDir", settings.data_dir.string()}});
  supervisor.consuming();
  warn_without_organisation();
  return {};
}

// Where there are no others it is this one alone.
std::vector<api::MemberView> App::Parts::members() const {
  std::vector<api::MemberView> views;
  if (!peers) {
    api::MemberView own{.name = member_name(settings),
                        .roles = role_names(settings),
                        .version = options.version,
                        .partitions = {},
                        .seen_at = clock.now()};
    // All of them: nobody else reads this log.
    if (const auto ranges = log->ranges(); ranges && consuming.load()) {
      for (const auto& range : *ranges) own.partitions.push_back(range.partition);
    }
    views.push_back(std::move(own));
    return views;
  }
  for (auto& member : peers->members()) {
    views.push_back({.name = std::move(member.id),
                     .roles = std::move(member.roles),
                     .version = std::move(member.version),
                     .partitions = std::move(member.partitions),
                     .seen_at = member.seen_at});
  }
  return views;
}

}  // namespace conversed::daemon
