#include "daemon/app_turns.h"

#include <utility>

#include "daemon/ops/logging.h"
#include "queue/shares.h"
#include "store/commit/committer.h"

namespace conversed::daemon {

using model::fail;
using model::Result;

namespace {

void report_unreadable_log(const model::Error& error) {
  log::error("log can't be read; trying again", {{"error", error.message}});
}

flows::Limits flow_limits(const config::Settings& all) {
  const config::FlowSettings& settings = all.flows;
  flows::Limits limits;
  limits.nodes_per_turn = settings.max_steps;
  limits.visits_per_node = settings.max_visits;
  limits.outputs_per_turn = settings.max_outputs;
  limits.context_bytes = settings.max_context_bytes;
  limits.profile_bytes = settings.max_profile_bytes;
  limits.output_bytes = settings.max_output_bytes;
  limits.call_bytes = settings.max_call_bytes;
  limits.slot_hits = settings.max_slot_hits;
  limits.slot_bytes = settings.max_slots_bytes;
  limits.call_timeout = all.calls.timeout;
  return limits;
}

}  // namespace

TurnParts::TurnParts(Ground& ground, LiveParts& live, Ownership& ownership, TurnPorts effects,
                     std::function<void()> ownership_changed)
    : ground_(ground),
      live_(live),
      ownership_(ownership),
      effects_(std::move(effects)),
      recovery_(*ground.store),
      partitions_({.in_flight = ground.settings.limits.in_flight, .heartbeats = &ground.heartbeats},
                  *ground.store, ownership, recovery_, live.busy, recent_,
                  {.ownership_changed = std::move(ownership_changed),
                   .touch = [this](const model::SessionKey& key) { touch(key); }}) {}

Result<void> TurnParts::start(std::span<const queue::PartitionRange> ranges,
                              const std::string& run) {
  for (const auto& shard : ground_.store->shards()) {
    if (auto forgotten = shard->forget_writers(); !forgotten) {
      log::warn("marks of daemons that are gone can't be removed",
                {{"error", forgotten.error().message}});
    }
  }
  log_partitions_ = static_cast<std::int32_t>(ranges.size());
  queue::LanesSettings lane_settings;
  lane_settings.workers = ground_.settings.workers;
  lane_settings.in_flight_limit = ground_.settings.limits.in_flight;
  lane_settings.heartbeats = &ground_.heartbeats;
  if (ownership_.is_shared()) {  // the log's group assigns partitions later
    ownership_.begin(log_partitions_);
    recovery_.begin_run(run);
    sharing_ = true;
    lane_settings.partitions = log_partitions_;
  } else if (auto taken = take_up_log(ranges); !taken) {
    return taken;
  }
  worker_.emplace(batch_context(), live_.watch, live_.busy, ground_.metrics, ports(),
                  recorder_.get(), &ground_.heartbeats);
  lane_settings.share_of = [this](const std::string& lane_key) {
    const auto key = model::SessionKey::decode(lane_key);
    return key ? share_of(live_.assets, *key) : std::string();
  };
  park_in_log(lane_settings);
  lanes_ = std::make_unique<queue::Lanes>(std::move(lane_settings),
                                          [this](queue::Run&& lane_run, queue::Finish finish) {
                                            worker_->handle(std::move(lane_run), std::move(finish));
                                          });
  lanes_to_touch_ = lanes_.get();
  ground_.events.release();
  return start_pump();
}

// Only if the log can read single records.
void TurnParts::park_in_log(queue::LanesSettings& settings) {
  if (!ground_.log->read({})) return;
  settings.parked_limit = ground_.settings.limits.backlog;
  // As many records as the Committer takes without making a worker wait.
  settings.in_hand_limit =
      store::CommitterSettings{}.max_waiting - queue::Shares::max_taken * settings.max_run;
  settings.read = [this](std::span<const model::Position> at) {
    auto records = ground_.log->read(at);
    if (!records) {
      log::error("events can't be read from the log; trying again",
                 {{"partition", at.front().partition},
                  {"offset", at.front().offset},
                  {"error", records.error().message}});
    }
    return records;
  };
}

Result<void> TurnParts::start_pump() {
  queue::PumpSettings settings;
  settings.heartbeats = &ground_.heartbeats;
  settings.report = report_unreadable_log;
  settings.broken = [this](const queue::Error& error) { ground_.die(error); };
  if (ownership_.is_shared()) {
    settings.owner = &partitions_;
    if (auto looks = partitions_.start(); !looks) return looks;
  } else if (auto drained = drain_inboxes(); !drained) {
    return drained;
  }
  auto started = queue::Pump::start(settings, *ground_.log, *lanes_);
  if (!started) return fail(started.error());
  pump_ = std::move(*started);
  pump_to_hold_ = pump_.get();
  look_at_shards();
  return {};
}

// For a daemon that reads the whole log. If the recorder can't be opened, the daemon works without
// it.
Result<void> TurnParts::take_up_log(std::span<const queue::PartitionRange> ranges) {
  const auto file = flight_recorder_file(ground_.settings.data_dir);
  if (auto opened = FlightRecorder::open(file, boot_id())) {
    recorder_ = std::move(*opened);
  } else {
    log::warn("crashes can't be attributed to events", {{"error", opened.error().message}});
  }
  return recovery_.begin(recorder_.get(), ranges);
}

// Runs the sessions whose inbox had events when the last run ended. A busy session goes on when its
// call is answered.
Result<void> TurnParts::drain_inboxes() {
  for (const auto& shard : ground_.store->shards()) {
    auto keys = waiting_sessions(*shard, live_.busy, [](const model::SessionKey&) { return true; });
    if (!keys) return fail(keys.error());
    for (const auto& key : *keys) lanes_->touch(key);
  }
  return {};
}

TurnBatchContext TurnParts::batch_context() {
  return {.store = *ground_.store,
          .assets = live_.assets,
          .pending_replies = live_.pending_replies,
          .clock = ground_.clock,
          .timer_clock = &ground_.timer_clock,
          .limits = flow_limits(ground_.settings),
          .recovery = &recovery_,
          .partitions = log_partitions_,
          .keeps_receipts = ground_.settings.retention.receipts.count() > 0,
          .reads_ahead = ground_.settings.store.driver == config::StoreDriver::postgres,
          .recent = &recent_,
          .spans = ground_.spans};
}

TurnPorts TurnParts::ports() {
  TurnPorts ports = effects_;
  ports.counted = [this](const std::string& organisation_id, std::int64_t injects) {
    live_.quota.committed(organisation_id, injects);
  };
  ports.fatal = [this](const model::Error& error) { ground_.die(error); };
  return ports;
}

bool TurnParts::drain(std::chrono::milliseconds limit) {
  return pump_ ? pump_->stop(limit) : !lanes_ || lanes_->stop(limit);
}

void TurnParts::stop() {
  pump_to_hold_ = nullptr;
  if (worker_) worker_->stop();
}

// Runs that could not be committed stay unfinished in the log. The next owner of a shared partition
// treats them as runs that were in hand.
void TurnParts::mark_clean_stop(bool drained) {
  if (!drained || !sharing_) return;
  if (auto told = recovery_.stopped(); !told) {
    log::warn("the stop can't be marked as clean", {{"error", told.error().message}});
  }
}

void TurnParts::look_at_shards() {
  queue::Pump* const pump = pump_to_hold_.load();
  if (pump == nullptr) return;
  const auto& shards = ground_.store->shards();
  const std::lock_guard lock(looking_);
  if (shards.size() > 1) {
    auto aside = partitions_aside();
    if (aside == aside_) return;
    aside_ = aside;
    return pump->set_aside(std::move(aside));
  }
  shards.front()->committer().healthy() ? pump->release() : pump->hold();
}

std::vector<std::int32_t> TurnParts::partitions_aside() const {
  std::vector<std::int32_t> aside;
  for (std::int32_t partition = 0; partition < log_partitions_; ++partition) {
    const bool works = ground_.store->of(partition).healthy();
    if (!works || ground_.store->layout().is_moving(partition)) aside.push_back(partition);
  }
  return aside;
}

void TurnParts::touch(const model::SessionKey& key) {
  if (!ownership_.owns(key)) return;
  // Without lanes there is nothing to do: once they exist, all inboxes are drained.
  if (auto* all = lanes_to_touch_.load(); all != nullptr) all->touch(key.encode());
}

void TurnParts::look_at_lag() {
  using config::Role;
  const bool only_appends = !ground_.has(Role::worker) && ground_.has(Role::scheduler);
  if (!only_appends || !ground_.consuming.load()) return;
  const auto ranges = ground_.log->ranges();
  if (ranges) lag_elsewhere_ = static_cast<std::size_t>(queue::lag_of(*ranges));
}

bool TurnParts::waits_for_share(const model::SessionKey& key) const {
  const queue::Lanes* all = lanes_to_touch_.load();
  return all != nullptr && all->waits_for_share(key.encode());
}

std::size_t TurnParts::records_in_flight() const {
  const queue::Lanes* all = lanes_to_touch_.load();
  return all == nullptr ? lag_elsewhere_.load() : all->in_flight();
}

}  // namespace conversed::daemon
