#include "daemon/turns/recovery.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/ops/logging.h"
#include "store/store.h"

namespace conversed::daemon {

using model::fail;
using model::Result;

namespace {

std::vector<model::Position> committed_of(std::span<const queue::PartitionRange> ranges) {
  std::vector<model::Position> committed;
  for (const auto& range : ranges) {
    committed.push_back(
        {.epoch = range.epoch, .partition = range.partition, .offset = range.committed});
  }
  return committed;
}

}  // namespace

void Recovery::know(State& state, std::vector<store::Attempts::Counted> counted) {
  for (auto& event : counted) {
    state.events.insert_or_assign(std::move(event.event_id), Known{event.partition, event.count});
  }
}

void Recovery::forget(State& state, std::int32_t partition) {
  state.windows.erase(partition);
  std::erase_if(state.events, [&](const auto& each) { return each.second.partition == partition; });
}

Result<void> Recovery::begin(FlightRecorder* recorder,
                             std::span<const queue::PartitionRange> ranges) {
  const auto left = recorder == nullptr ? FlightRecorder::Left{} : recorder->left();
  auto counted = store_.first().attempts().attribute(left.run, left.events, committed_of(ranges));
  if (!counted) return fail(counted.error());
  if (recorder != nullptr) recorder->begin();
  if (!left.events.empty()) {
    log::warn("the last run went down with events in hand: they run alone",
              {{"events", left.events.size()}});
  }
  state_.with([&](State& state) {
    know(state, std::move(*counted));
    look(state);
  });
  return {};
}

Result<void> Recovery::take_up(std::span<const queue::PartitionRange> ranges,
                               std::size_t in_flight) {
  std::map<store::Shard*, std::vector<store::Attempts::Taking>> by_shard;
  for (const auto& range : ranges) {
    const auto below = range.committed + static_cast<std::int64_t>(in_flight);
    by_shard[&store_.of(range.partition)].push_back({.partition = range.partition,
                                                     .committed = range.committed,
                                                     .taken_below = std::min(range.end, below)});
  }
  store::Attempts::TakenUp all;
  for (const auto& [shard, taking] : by_shard) {
    auto taken = shard->attempts().take_up(run_, taking);
    if (!taken) return fail(taken.error());
    all.crashed |= taken->crashed;
    all.windows.merge(taken->windows);
    std::ranges::move(taken->counted, std::back_inserter(all.counted));
  }
  if (all.crashed) {
    log::warn("partitions were left behind by a crash: what may have been in hand runs alone",
              {{"partitions", all.windows.size()}});
  }
  state_.with([&](State& state) {
    for (const auto& range : ranges) forget(state, range.partition);
    for (const auto& [partition, window] : all.windows) {
      // A run that crashed with a counted event alone had no other event in hand.
      const bool alone =
          std::ranges::find(all.counted, partition, &store::Attempts::Counted::partition) !=
          all.counted.end();
      state.windows[partition] = {.of = window, .crashes = alone ? 0 : 1};
    }
    if (!all.windows.empty()) state.left = in_flight;
    know(state, std::move(all.counted));
    look(state);
  });
  return {};
}

Result<void> Recovery::give_up(std::span<const std::int32_t> partitions, InHand in_hand) {
  state_.with([&](State& state) {
    for (const auto partition : partitions) forget(state, partition);
    look(state);
  });
  if (in_hand == InHand::unfinished) return {};
  std::map<store::Shard*, std::vector<std::int32_t>> by_shard;
  for (const auto partition : partitions) by_shard[&store_.of(partition)].push_back(partition);
  Result<void> told;
  for (const auto& [shard, its_partitions] : by_shard) {
    auto given_up = shard->attempts().give_up(run_, its_partitions);
    if (!given_up) told = given_up;
  }
  return told;
}

Result<void> Recovery::stopped() {
  Result<void> told;
  for (const auto& shard : store_.shards()) {
    auto given_up = shard->attempts().give_up_all(run_);
    if (!given_up) told = given_up;
  }
  return told;
}

std::optional<int> Recovery::crashes(const model::Event& event, std::int32_t partition,
                                     const std::optional<model::Position>& at) const {
  if (!any_.load(std::memory_order_acquire)) return std::nullopt;
  return state_.with([&](const State& state) -> std::optional<int> {
    if (const auto known = state.events.find(event.id); known != state.events.end()) {
      return known->second.crashes;
    }
    const auto window = state.windows.find(partition);
    if (window == state.windows.end()) return std::nullopt;
    const Window& left = window->second;
    if (at ? at->offset >= left.of.below : event.accepted_at >= left.of.since) return std::nullopt;
    return left.crashes;
  });
}

Result<void> Recovery::start(const store::InHand& event, int crashes) {
  state_.with([&](State& state) {
    const bool is_new = state.events.insert({event.event_id, {event.partition, crashes}}).second;
    if (is_new && state.left > 0 && --state.left == 0) state.windows.clear();
    look(state);
  });
  if (run_.empty()) return {};  // the flight recorder has the note
  return store_.of(event.partition).attempts().begin(event, crashes + 1);
}

void Recovery::settled(std::span<const std::string> event_ids) {
  if (event_ids.empty()) return;
  state_.with([&](State& state) {
    for (const auto& id : event_ids) state.events.erase(id);
    look(state);
  });
}

}  // namespace conversed::daemon
