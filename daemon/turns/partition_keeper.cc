#include "daemon/turns/partition_keeper.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/live/busy_sessions.h"
#include "daemon/ops/logging.h"
#include "store/conversation/recent_sessions.h"
#include "store/store.h"

namespace conversed::daemon {
namespace {

using model::fail;
using model::Result;
using model::SessionKey;
using store::Sessions;

constexpr std::size_t page_size = 1'024;

template <typename Each>
Result<void> for_each_inbox(store::Shard& shard, Sessions::Which which, const Each& each) {
  std::int64_t after = 0;
  for (;;) {
    const auto page = shard.sessions().inboxes(which, after, page_size);
    if (!page) return fail(page.error());
    for (const auto& inbox : *page) each(inbox);
    if (page->size() < page_size) return {};
    after = page->back().row;
  }
}

}  // namespace

Result<std::vector<std::string>> waiting_sessions(
    store::Shard& shard, api::BusySessions& busy,
    const std::function<bool(const SessionKey&)>& wanted) {
  auto sized = for_each_inbox(shard, Sessions::Which::all, [&](const Sessions::Inbox& inbox) {
    if (wanted(inbox.key)) busy.set(inbox.key, inbox.size);
  });
  if (!sized) return fail(sized.error());
  std::vector<std::string> keys;
  auto read = for_each_inbox(shard, Sessions::Which::to_drain, [&](const Sessions::Inbox& inbox) {
    if (wanted(inbox.key)) keys.push_back(inbox.key.encode());
  });
  if (!read) return fail(read.error());
  return keys;
}

PartitionKeeper::PartitionKeeper(PartitionKeeperSettings settings, store::Store& store,
                                 Ownership& ownership, Recovery& recovery, api::BusySessions& busy,
                                 store::RecentSessions& recent, PartitionKeeperPorts ports)
    : settings_(settings),
      store_(store),
      ownership_(ownership),
      recovery_(recovery),
      busy_(busy),
      recent_(recent),
      ports_(std::move(ports)) {}

Result<void> PartitionKeeper::start() {
  return thread_.start("partitions", settings_.heartbeats, [this] { run(); });
}

// Reads the inboxes after the store knows that this run has taken the partitions up. From then on
// their former owner can't begin an event that may bring a daemon down.
Result<std::vector<std::string>> PartitionKeeper::take_up(
    std::span<const queue::PartitionRange> partitions) {
  if (partitions.empty()) return std::vector<std::string>();
  if (auto taken = recovery_.take_up(partitions, settings_.in_flight); !taken) {
    return fail(taken.error());
  }
  std::vector<std::int32_t> numbers;
  for (const auto& range : partitions) numbers.push_back(range.partition);
  ownership_.take(numbers);
  // Drops what is known of sessions from an earlier ownership of these partitions.
  recent_.clear();
  busy_.forget([this](const std::string& encoded) {
    const auto key = SessionKey::decode(encoded);
    return key && ownership_.owns(*key);
  });
  auto keys = sessions_to_run(partitions);
  if (!keys) {
    ownership_.give_up(numbers);
    forget_lost_inboxes();
    // No event of them has begun. If this fails as well, the next owner treats the partitions as
    // left behind by a crash.
    (void)recovery_.give_up(numbers, Recovery::InHand::finished);
    return fail(keys.error());
  }
  // Before the Lanes get the partitions. So everything that commits offer afterwards is newer than
  // the rows that are read now.
  ports_.ownership_changed();
  log::info("partitions taken up", {{"owned", ownership_.partitions().size()}});
  return keys;
}

Result<std::vector<std::string>> PartitionKeeper::sessions_to_run(
    std::span<const queue::PartitionRange> partitions) {
  std::set<store::Shard*> shards;
  for (const auto& range : partitions) shards.insert(&store_.of(range.partition));
  std::vector<std::string> all;
  for (store::Shard* shard : shards) {
    auto keys = waiting_sessions(*shard, busy_,
                                 [this](const SessionKey& key) { return ownership_.owns(key); });
    if (!keys) return keys;
    std::ranges::move(*keys, std::back_inserter(all));
  }
  return all;
}

void PartitionKeeper::given_up(std::span<const std::int32_t> partitions, bool complete) {
  ownership_.give_up(partitions);
  forget_lost_inboxes();
  ports_.ownership_changed();
  log::info("partitions given up",
            {{"count", partitions.size()}, {"owned", ownership_.partitions().size()}});
  if (!complete) {
    log::warn("partitions were lost with Turns in hand: the next owner runs these alone");
  }
  const auto in_hand = complete ? Recovery::InHand::finished : Recovery::InHand::unfinished;
  if (auto told = recovery_.give_up(partitions, in_hand); !told) {
    log::warn(
        "partitions can't be given up in the store: the next owner takes them for left behind",
        {{"error", told.error().message}});
  }
}

void PartitionKeeper::forget_lost_inboxes() {
  busy_.forget([this](const std::string& encoded) {
    const auto key = SessionKey::decode(encoded);
    return !key || !ownership_.owns(*key);
  });
}

void PartitionKeeper::run() {
  using Clock = std::chrono::steady_clock;
  auto next = Clock::now() + settings_.look_interval;
  for (;;) {
    if (thread_.take(next).stop) return;
    if (Clock::now() < next) continue;
    look();
    next = Clock::now() + settings_.look_interval;
  }
}

// If the store fails, the next look asks again.
void PartitionKeeper::look() {
  forget_lost_inboxes();
  if (ownership_.partitions().empty()) return;
  const auto touch = [this](const Sessions::Inbox& inbox) {
    if (ownership_.owns(inbox.key)) ports_.touch(inbox.key);
  };
  for (const auto& shard : store_.shards()) {
    if (!shard->committer().healthy()) continue;
    (void)for_each_inbox(*shard, Sessions::Which::to_drain, touch);
  }
}

}  // namespace conversed::daemon
