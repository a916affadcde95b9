#include "daemon/cluster/peers.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "config/settings.h"
#include "daemon/ops/logging.h"
#include "daemon/timers/timer_clock.h"
#include "queue/log.h"
#include "store/model/ids.h"
#include "store/store.h"

namespace conversed::daemon {
namespace {

using model::Errc;
using model::fail;
using model::Result;
using std::chrono::milliseconds;
using store::ClusterMember;

// How often to ask again for a name that is taken.
constexpr milliseconds between_tries{200};
// A slower answer is too inexact to measure the store's clock.
constexpr milliseconds longest_measurement{1'000};

bool schedules(const ClusterMember& member) {
  constexpr auto role = to_string(config::Role::scheduler);
  return std::ranges::find(member.roles, role) != member.roles.end();
}

// Rendezvous hashing: the member with the greatest weight for `what` owns it. A member that joins
// or leaves moves only its own share.
std::int32_t weight(const std::string& name, std::string_view what) {
  return queue::partition_of(name + ' ' + std::string(what),
                             std::numeric_limits<std::int32_t>::max());
}

// The live members with the role scheduler.
std::vector<std::pair<std::string, std::string>> schedulers(
    const std::vector<ClusterMember>& members) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const ClusterMember& member : members) {
    if (schedules(member)) found.emplace_back(member.id, member.run);
  }
  return found;
}

}  // namespace

Peers::Peers(PeersSettings settings, store::Store& store, TimerClock& clock)
    : settings_(std::move(settings)), store_(store), clock_(clock) {
  self_.id = settings_.name;
  self_.run = model::new_id();
  self_.roles = settings_.roles;
  self_.version = settings_.version;
  schedules_ = schedules(self_);
}

Result<void> Peers::start() {
  if (auto joined = join(); !joined) return joined;
  joined_ = true;
  if (auto beaten = beat(); !beaten) return beaten;
  heard_ = store_.first().notifications().subscribe(
      std::string(store::members_topic), [this](std::string_view name) {
        if (name == settings_.name) return;
        thread_.mailbox()->put([](Letters& letters) { letters.look = true; });
      });
  // Without a heartbeat, since this thread waits for the store.
  return thread_.start("peers", nullptr, [this] { work(); });
}

// A live holder of the name shows a newer heartbeat within an interval. Else it has died.
Result<void> Peers::join() {
  std::optional<model::Timestamp> seen_at;
  for (;;) {
    const auto holder = store_.members().join(self_, settings_.previous_run);
    if (!holder) return fail(holder.error());
    if (holder->run.empty()) return {};
    if (seen_at.value_or(holder->seen_at) != holder->seen_at) {
      return fail(Errc::conflict, "another daemon runs as " + self_.id +
                                      " on this store; give each its own cluster.name");
    }
    if (!seen_at) {
      log::info("a daemon of this name ran lately; waiting until it is certain that it has ended",
                {{"name", self_.id}});
    }
    seen_at = holder->seen_at;
    const auto until = std::chrono::steady_clock::now() + between_tries;
    if (thread_.mailbox()->take(until).stop) return fail(Errc::unavailable, "the start was ended");
  }
}

void Peers::stop() {
  heard_ = {};
  thread_.stop();
  if (!std::exchange(joined_, false)) return;
  if (auto left = store_.members().leave(self_); !left) {
    log::warn("the end of this daemon can't be stored; the others notice it after 8 s",
              {{"error", left.error().message}});
  }
}

void Peers::retire() {
  schedules_ = false;
  thread_.mailbox()->put([](Letters& letters) { letters.retire = true; });
}

bool Peers::mine(std::string_view what) const {
  if (!schedules_.load()) return false;
  const auto own = weight(self_.id, what);
  const Shared members = seen();
  return std::ranges::none_of(*members, [&](const ClusterMember& other) {
    if (other.id == self_.id || !schedules(other)) return false;
    return std::make_tuple(weight(other.id, what), std::string_view(other.id)) >
           std::make_tuple(own, std::string_view(self_.id));
  });
}

void Peers::work() {
  auto next = std::chrono::steady_clock::now() + settings_.interval;
  bool rests = true;  // for one interval behind a heartbeat
  for (;;) {
    const Letters letters = thread_.mailbox()->take(next);
    if (letters.stop) return;
    if (letters.retire) self_.roles.clear();
    next = std::chrono::steady_clock::now() + settings_.interval;
    if (!std::exchange(rests, false) || letters.retire || letters.look) rests = try_to_beat();
    if (letters.retire && rests) tell_others();
    if (settings_.also) settings_.also();
  }
}

// False: it has to be tried again.
bool Peers::try_to_beat() {
  const auto beaten = beat();
  if (beaten) return true;
  if (beaten.error().code != Errc::conflict) {
    store_.committer().probe();  // a failure outside of a transaction is not known to the Committer
  } else if (!std::exchange(replaced_, true) && settings_.replaced) {
    settings_.replaced(beaten.error());
  }
  return false;
}

// Without the notification the other daemons notice the change at their next heartbeat.
void Peers::tell_others() {
  const auto told = store_.committer().write_and_wait([this](store::Writer& writer) {
    store::announce(writer.connection(), store::members_topic, self_.id);
  });
  if (!told) log::debug("other daemons can't be notified", {{"error", told.error().message}});
}

// While the store fails, the known members stay as they are.
Result<void> Peers::beat() {
  if (settings_.partitions) self_.partitions = settings_.partitions();
  milliseconds begin{0};
  auto present = store_.members().beat(self_, [&] { begin = clock_.steady_now(); });
  if (!present) return fail(present.error());
  const auto took = clock_.steady_now() - begin;
  if (took <= longest_measurement) clock_.follow(present->now, begin + took / 2, took / 2);

  const auto before = schedulers(*seen());
  const auto after = schedulers(present->members);
  members_.with([&](Shared& members) {
    members = std::make_shared<const std::vector<ClusterMember>>(std::move(present->members));
  });
  if (before != after && settings_.changed) settings_.changed();
  return {};
}

}  // namespace conversed::daemon
