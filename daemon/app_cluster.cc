#include "daemon/app_cluster.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/data/storage.h"
#include "daemon/ops/logging.h"
#include "daemon/ops/version.h"
#include "store/cluster/notifications.h"

namespace conversed::daemon {

using model::Result;

namespace {

std::vector<std::string> role_names(const config::Settings& settings) {
  std::vector<std::string> names;
  for (const auto role : settings.roles) names.emplace_back(to_string(role));
  return names;
}

}  // namespace

ClusterParts::ClusterParts(Ground& with, LiveParts& live, ClusterPorts told)
    : ground(with),
      ports(std::move(told)),
      ownership(in_cluster(with.settings) ? Ownership::Of::partitions : Ownership::Of::everything) {
  if (!in_cluster(ground.settings)) return;
  shared_limits = std::make_unique<SharedLimits>(
      SharedLimitsSettings{.daemon = member_name(ground.settings),
                           .inbox_limit = static_cast<std::int64_t>(ground.settings.limits.inbox)},
      *ground.store, live.rate_limiter, live.public_limiter, live.busy, live.quota);
  PeersSettings settings{.name = member_name(ground.settings),
                         .roles = role_names(ground.settings),
                         .version = version,
                         .previous_run = ground.door.folder().last_run(),
                         .partitions = [this] { return ownership.partitions(); },
                         .changed = ports.daemons_changed,
                         .also =
                             [this] {
                               shared_limits->tell();
                               ground.door.write_ports();
                               ports.each_second();
                             },
                         .replaced = [this](const model::Error& error) { ground.die(error); }};
  peers = std::make_unique<Peers>(std::move(settings), *ground.store, ground.timer_clock);
}

void ClusterParts::hear(LiveParts& live) {
  if (!is_shared()) return;
  const auto subscribe = [&](std::string_view topic, const store::Notifications::Heard& heard) {
    std::ranges::move(ground.store->subscribe(topic, heard), std::back_inserter(heard_));
  };
  // Subscribes to a topic whose notifications name a session.
  const auto hear_of_session = [&](std::string_view topic,
                                   const std::function<void(const model::SessionKey&)>& tell) {
    subscribe(topic, [tell](std::string_view session) {
      if (const auto key = model::SessionKey::decode(session)) tell(*key);
    });
  };
  subscribe(store::answers_topic,
            [&live](std::string_view inputs) { live.pending_replies.hear(inputs); });
  // If a notification is lost, the regular looks of PartitionKeeper and Deliverer find its session.
  hear_of_session(store::touch_topic, ports.touch);
  hear_of_session(store::deliver_topic, ports.deliver);
  hear_of_session(store::retry_topic, ports.retry);
  subscribe(store::resume_topic, [this](std::string_view endpoint_id) {
    if (!endpoint_id.empty()) ports.resume(std::string(endpoint_id));
  });
  subscribe(store::erased_topic, [this](std::string_view) { ports.forget_sessions(); });
  subscribe(store::layout_topic, [this](std::string_view) { ports.layout_changed(); });
  const auto notify = [&live](std::string_view names) { live.watch.notify(names); };
  subscribe(store::outputs_topic, notify);
  subscribe(store::jobs_topic, notify);
}

Result<void> ClusterParts::start() {
  if (!peers) return {};
  if (auto joined = peers->start(); !joined) return joined;
  // Without this note the next start waits a few seconds for the name.
  if (auto noted = ground.door.folder().write_run(peers->run()); !noted) {
    log::warn("the next start can't know this run", {{"error", noted.error().message}});
  }
  return {};
}

void ClusterParts::stop_hearing() {
  heard_.clear();
}

void ClusterParts::stop() {
  if (peers) peers->stop();
}

std::function<bool(std::string_view)> ClusterParts::mine() const {
  if (!peers) return {};
  return [this](std::string_view id) { return peers->mine(id); };
}

std::vector<api::MemberView> ClusterParts::members() const {
  std::vector<api::MemberView> views;
  if (!peers) {
    api::MemberView own{.name = member_name(ground.settings),
                        .roles = role_names(ground.settings),
                        .version = version,
                        .seen_at = ground.clock.now()};
    // This daemon has all partitions: no other daemon reads its log.
    if (const auto ranges = ground.log->ranges(); ranges && ground.consuming.load()) {
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
