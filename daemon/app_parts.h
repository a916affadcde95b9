#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "api/audit_trail.h"
#include "api/auth/authenticator.h"
#include "api/live/assets_cache.h"
#include "api/live/blocking_pool.h"
#include "api/live/busy_sessions.h"
#include "api/live/events.h"
#include "api/live/inject_quota.h"
#include "api/live/pending_replies.h"
#include "api/live/rate_limiter.h"
#include "api/services.h"
#include "daemon/app.h"
#include "daemon/calls/caller.h"
#include "daemon/cluster/ownership.h"
#include "daemon/cluster/peers.h"
#include "daemon/cluster/shared_limits.h"
#include "daemon/data/backup.h"
#include "daemon/data/embedded.h"
#include "daemon/data/housekeeper.h"
#include "daemon/data/late_log.h"
#include "daemon/delivery/deliverer.h"
#include "daemon/front_door.h"
#include "daemon/jobs/job_queue.h"
#include "daemon/jobs/job_worker.h"
#include "daemon/jobs/proactive_setup.h"
#include "daemon/ops/metrics.h"
#include "daemon/outbound/egress.h"
#include "daemon/outbound/http_client.h"
#include "daemon/service/supervisor.h"
#include "daemon/timers/scheduler.h"
#include "daemon/timers/timer_clock.h"
#include "daemon/turns/flight_recorder.h"
#include "daemon/turns/partition_keeper.h"
#include "daemon/turns/recovery.h"
#include "daemon/turns/turn_worker.h"
#include "queue/lanes.h"
#include "queue/pump.h"

// For app*.cc only.
namespace conversed::daemon {

// All parts, in the order of what needs what: destruction goes the other way round.
struct App::Parts {
  // What is there before them, and outlives them.
  struct Before {
    model::Heartbeats& heartbeats;
    Supervisor& supervisor;
    FrontDoor& door;
    TimerClock& timer_clock;
  };

  Parts(const config::Settings& all, const model::Clock& time, Before before, Egress policy,
        api::JwtVerifier contact_center, std::unique_ptr<store::Store> opened_store,
        OpenedLog opened_log);

  model::Result<void> start();
  void stop(std::chrono::milliseconds limit);

  model::Result<void> start_consuming(std::span<const queue::PartitionRange> ranges);
  model::Result<void> join_peers();
  model::Result<void> start_services();
  model::Result<void> begin(std::span<const queue::PartitionRange> ranges);
  void warn_without_organisation();
  model::Result<void> start_listening();
  void look_at_lag();
  model::Result<void> take_up_log(std::span<const queue::PartitionRange> ranges);
  model::Result<void> share_log(std::span<const queue::PartitionRange> ranges);
  model::Result<void> drain_inboxes();
  TurnPorts ports();
  TurnBatchContext turn_batch_context(std::size_t partitions);
  [[nodiscard]] std::size_t records_in_flight() const;  // 0 as long as there are no lanes
  AppendEvent append_event();
  void wake_job(const std::string& id);
  void touch_lane(const model::SessionKey& key);
  void hear_others();
  void hear_session(std::string_view payload);
  void on_store_health(bool healthy);
  void die(const model::Error& error);
  void update_metrics();
  [[nodiscard]] std::string_view not_ready() const;
  [[nodiscard]] bool has(config::Role role) const;
  [[nodiscard]] std::unique_ptr<SharedLimits> make_shared_limits();
  [[nodiscard]] std::unique_ptr<Peers> make_peers();
  [[nodiscard]] SchedulerSettings scheduler_settings();
  [[nodiscard]] CallerSettings calling();
  [[nodiscard]] JobWorkerSettings working();
  [[nodiscard]] HousekeeperSettings tidying();
  [[nodiscard]] std::vector<api::MemberView> members() const;
  [[nodiscard]] Progress progress();
  void give_up_log(bool finished);

  const config::Settings& settings;
  const model::Clock& clock;
  model::Heartbeats& heartbeats;
  Supervisor& supervisor;
  FrontDoor& door;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<queue::KeyedAppend> stored_keys;  // outlives the log, which calls it back
  queue::KeyedAppend& keyed;
  std::unique_ptr<queue::Log> log;
  BackupMaker backups;
  Metrics& metrics;
  const api::ApiOptions options;

  api::Events events;
  api::AssetsCache assets;
  api::Authenticator authenticator;
  api::AuditTrail audit;
  api::RateLimiter rate_limiter;
  api::RateLimiter public_limiter;
  api::InjectQuota quota;
  api::BusySessions busy;
  api::PendingReplies pending_replies;
  api::OutputWatch watch;
  api::KeyWatch job_watch;
  api::BlockingPool pool;
  api::BlockingPool sign_ins;
  api::BlockingPool imports;

  Ownership ownership;
  HttpClient webhooks;
  HttpClient upstreams;
  TimerClock& timer_clock;
  const RetentionClock retention_clock;
  const ScheduleClock schedule_clock;
  Deliverer deliverer;
  store::Notifications::Subscription heard_answers;  // where other daemons share the store
  store::Notifications::Subscription heard_sessions;
  store::Notifications::Subscription heard_outputs;
  store::Notifications::Subscription heard_jobs;
  Caller caller;
  std::unique_ptr<SharedLimits> shared_limits;  // these two where there may be other daemons
  std::unique_ptr<Peers> peers;
  Scheduler scheduler;
  ProactiveSetup setup;
  JobWorker job_worker;
  std::optional<JobQueue> job_queue;  // where what wakes jobs has a log of its own
  Housekeeper housekeeper;

  Recovery recovery;
  PartitionKeeper partitions;
  std::unique_ptr<FlightRecorder> recorder;   // null: the log is shared, or there is no room
  bool sharing = false;                       // partitions of the log may be this run's
  std::atomic<bool> consuming{false};         // without the role of a worker: it might
  std::atomic<std::size_t> lag_elsewhere{0};  // where there are no lanes
  std::atomic<bool> failed{false};
  std::atomic<queue::Pump*> pump_to_hold{nullptr};
  std::optional<TurnWorker> worker;
  std::unique_ptr<queue::Lanes> lanes;
  std::atomic<queue::Lanes*> lanes_to_touch{nullptr};
  std::unique_ptr<queue::Pump> pump;

  std::optional<api::Services> services;
  LateLog late_log;
};

}  // namespace conversed::daemon
