#include "daemon/turns/turn_worker.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "api/live/assets_cache.h"
#include "api/live/busy_sessions.h"
#include "api/live/pending_replies.h"
#include "daemon/ops/logging.h"
#include "daemon/ops/metrics.h"
#include "daemon/service/backoff.h"
#include "daemon/turns/poison_search.h"
#include "daemon/turns/recovery.h"
#include "store/commit/call_target.h"
#include "store/commit/session_commit_writes.h"
#include "store/commit/usage.h"
#include "store/conversation/outbox.h"
#include "store/conversation/recent_sessions.h"
#include "store/conversation/sessions.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/planted_faults.h"
#include "store/runtime/thread_name.h"
#include "store/store.h"

namespace conversed::daemon {
namespace {

using model::Errc;

constexpr std::chrono::milliseconds store_retry_delay{50};
// For data that can't be read.
constexpr BackoffSettings read_pauses{.first = store_retry_delay,
                                      .max = std::chrono::milliseconds(5'000)};
// How long the planted fault `position_before_state` keeps a position ahead of its state: until
// after the position's commit.
constexpr std::chrono::milliseconds planted_delay{150};

// The sessions that a worker has read for the runs that it handles in a row. Each worker has its
// own.
thread_local std::map<model::SessionKey, store::Sessions::Loaded> sessions_ahead;

bool delivers(const store::SessionCommit& commit) {
  return std::ranges::find(commit.outputs, model::Delivery::pending, &model::Output::delivery) !=
         commit.outputs.end();
}

}  // namespace

// One run from the Lanes, with all attempts that it needs.
struct TurnWorker::Task {
  Task(queue::Run taken, queue::Finish done, LoneRuns& all, FlightRecorder* recorder)
      : run(std::move(taken)),
        key(session_of(run.key)),
        finish(std::move(done)),
        in_hand(all),
        noted(recorder) {}
  // A Task without an outcome is destroyed when the daemon stops while the store fails. Its
  // unfinished records stay in the log.
  ~Task() {
    leave();
    if (finish) (*finish)(queue::Next::abandoned);
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  void done(queue::Next next) {
    auto last = std::exchange(finish, std::nullopt);
    if (last) (*last)(next);
  }

  // From now on no event of the Task is at work that could bring the daemon down.
  void leave() {
    noted.clear();
    leave_hand();
  }

  // A batch that runs alone does not wait for this Task.
  void leave_hand() {
    alone = false;
    if (std::exchange(entered, false)) in_hand.leave();
  }

  queue::Run run;
  const model::SessionKey key;
  std::optional<queue::Finish> finish;
  LoneRuns& in_hand;
  bool entered = true;  // it counts as in hand in LoneRuns
  bool alone = false;   // no other batch is in hand
  FlightRecorder::Notes noted;
  int conflicts = 0;                   // lost commits
  int unreadable = 0;                  // tries in a row that could not read the session's data
  std::optional<PoisonSearch> search;  // set once the database has refused a batch
  std::chrono::steady_clock::time_point begun{};  // when the build of the batch began
  TurnBatch batch;
};

TurnWorker::TurnWorker(TurnBatchContext context, api::KeyWatch& watch, api::BusySessions& busy,
                       Metrics& metrics, TurnPorts ports, FlightRecorder* recorder,
                       model::Heartbeats* heartbeats)
    : context_(std::move(context)),
      watch_(watch),
      busy_(busy),
      ports_(std::move(ports)),
      recorder_(recorder),
      metrics_(metrics),
      rerunner_([this, heartbeat = model::heartbeat_of(heartbeats, "rerunner")](
                    const std::stop_token& stop) mutable {
        model::name_this_thread("rerunner");
        run_again(stop, std::move(heartbeat));
      }) {}

TurnWorker::~TurnWorker() {
  stop();
}

void TurnWorker::handle(queue::Run run, queue::Finish finish) {
  model::Heartbeat* const heartbeat = std::exchange(run.heartbeat, nullptr);
  in_hand_.enter(heartbeat);
  const auto in_a_row = std::exchange(run.in_a_row, {});
  if (!in_a_row.empty()) read_ahead(in_a_row);
  attempt(std::make_shared<Task>(std::move(run), std::move(finish), in_hand_, recorder_),
          heartbeat);
}

// If the read fails, each batch reads its session itself and reports the failure. Of several
// sessions of a user only one is read ahead, because its Turns may change the profile. Sessions in
// memory are not read.
void TurnWorker::read_ahead(std::span<const std::string_view> lane_keys) const {
  sessions_ahead.clear();
  if (lane_keys.size() < 2 || !context_.reads_ahead) return;
  std::vector<model::SessionKey> keys;
  for (const auto lane_key : lane_keys) {
    auto key = session_of(std::string(lane_key));
    const auto is_of_same_user = [&key](const model::SessionKey& other) {
      return other.project_id == key.project_id && other.user_id == key.user_id;
    };
    const bool is_kept = context_.recent != nullptr && context_.recent->has(key);
    if (!is_kept && std::ranges::none_of(keys, is_of_same_user)) keys.push_back(std::move(key));
  }
  std::map<store::Shard*, std::vector<model::SessionKey>> by_shard;
  for (auto& key : keys) by_shard[&context_.store.of(key)].push_back(std::move(key));
  for (auto& [shard, its_keys] : by_shard) {
    auto loaded = shard->sessions().load_with_profiles(its_keys);
    if (!loaded) continue;
    for (std::size_t at = 0; at < its_keys.size(); ++at) {
      sessions_ahead.emplace(std::move(its_keys[at]), std::move((*loaded)[at]));
    }
  }
}

TurnBatchInput TurnWorker::input_of(Task& task, model::Heartbeat* heartbeat) const {
  TurnBatchInput input{.key = task.key,
                       .records = task.run.records,
                       .alone = task.alone,
                       .after_conflict = task.conflicts > 0};
  // A crash in the Turn has to be attributed to its event. In a cluster the store counts one more
  // crash for a counted event. Then the event is noted. A crash before the note is not attributed,
  // and the event has not started. A crash after the note is attributed, even if the event has not
  // started yet.
  input.begin = [this, &task, heartbeat](const Beginning& beginning) -> model::Result<void> {
    if (heartbeat != nullptr) heartbeat->beat();
    if (beginning.is_first) task.noted.clear();
    if (context_.recovery != nullptr && beginning.crashes) {
      auto counted = context_.recovery->start(beginning.event, *beginning.crashes);
      if (!counted) return counted;
    }
    task.noted.note(beginning.event);
    return {};
  };
  input.known_session = [&key = task.key,
                         recent = context_.recent]() -> std::optional<store::Sessions::Loaded> {
    auto found = sessions_ahead.extract(key);
    if (!found.empty()) return std::move(found.mapped());
    return recent == nullptr ? std::nullopt : recent->take(key);
  };
  if (task.search) {
    input.records = task.search->next_of(task.run.records);
    input.one_start = true;
    input.refused = task.search->found();
  }
  return input;
}

void TurnWorker::attempt(const TaskPtr& task, model::Heartbeat* heartbeat) {
  task->begun = std::chrono::steady_clock::now();
  auto batch = build_turn_batch(context_, input_of(*task, heartbeat));
  if (!batch) return not_built(task, batch.error());
  task->unreadable = 0;
  if (batch->wants_alone) return run_alone(task);
  task->batch = std::move(*batch);
  if (task->batch.after.turns > 0) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - task->begun;
    metrics_.turn_seconds.observe(took.count());
  }
  if (!task->batch.changes) {
    return after_commit(task, store::Outcome::committed, task->batch.commit);
  }
  if (model::planted("position_before_state")) {
    task->done(queue::Next::idle);
    // Delays some states until after the position's commit. Else the fault would show by luck only.
    static std::atomic<unsigned> turns{0};
    if (turns.fetch_add(1) % 16 == 0) std::this_thread::sleep_for(planted_delay);
  }
  model::fault_point("turn.before_submit");
  auto encoded =
      std::make_unique<store::EncodedCommit>(store::encode(std::move(task->batch.commit)));
  if (context_.recent != nullptr && task->batch.reads_all) {
    // A commit tells the Deliverer of the session if it has outputs.
    context_.recent->keep(*encoded, task->batch.profile,
                          task->batch.outputs_are_known || delivers(encoded->commit));
  }
  // The commit may wait for a server that is away, and batches of other servers must run alone.
  if (context_.store.shards().size() > 1) task->leave_hand();
  context_.store.of(task->key).committer().submit(
      std::move(encoded), [this, task](store::Outcome outcome, const store::SessionCommit& commit) {
        after_commit(task, outcome, commit);
      });
}

void TurnWorker::not_built(const TaskPtr& task, const model::Error& error) {
  if (error.code == Errc::conflict) return ports_.fatal(error);  // abandons the Task
  task->leave();
  if (is_store_failure(error)) {
    context_.store.of(task->key)
        .committer()
        .probe();  // the failed read wrote nothing, so the Committer has to check the store
    return again_later(task, store_retry_delay);
  }
  log::error("session can't be read", {{"error", error.message}});
  again_later(task, backoff(read_pauses, ++task->unreadable, std::nullopt, 0));
}

// The rerunner does not wait for a batch that runs alone: a Task that can't enter is put off.
void TurnWorker::retry(const TaskPtr& task, model::Heartbeat* heartbeat) {
  if (!task->entered && !in_hand_.try_enter()) return again_later(task, store_retry_delay);
  task->entered = true;
  attempt(task, heartbeat);
}

// `attempt` then runs on the rerunner's thread, once all other batches have left. None of them
// waits for this Task.
void TurnWorker::run_alone(const TaskPtr& task) {
  task->entered = false;
  in_hand_.run_alone([this, task] {
    task->entered = true;
    task->alone = true;
    again_later(task, {});
  });
}

void TurnWorker::after_commit(const TaskPtr& task, store::Outcome outcome,
                              const store::SessionCommit& commit) {
  if (outcome != store::Outcome::committed && context_.recent != nullptr) {
    context_.recent->forget(task->key);
  }
  switch (outcome) {
    case store::Outcome::committed:
      model::fault_point("turn.after_commit");
      let_out(*task, commit);
      return go_on(task);
    case store::Outcome::conflict:
      metrics_.turn_conflicts.add();
      return again_later(task, pause_after_conflicts(++task->conflicts));
    case store::Outcome::poison:
      if (task->search) {
        task->search->refused(task->run.records, task->batch.first_started);
      } else {
        task->search.emplace();
      }
      return again_later(task, store_retry_delay);  // a long search must not keep the disk busy
  }
}

// Goes on after the effects of the batch.
void TurnWorker::go_on(const TaskPtr& task) {
  if (task->search && task->search->advance(task->run.records)) return again_later(task, {});
  task->leave();
  task->done(task->batch.drain_more ? queue::Next::again : queue::Next::idle);
}

void TurnWorker::let_out(Task& task, const store::SessionCommit& commit) {
  AfterCommit& after = task.batch.after;
  if (!after.spans.empty()) context_.spans->add(std::move(after.spans));
  if (context_.recovery != nullptr) context_.recovery->settled(commit.attempts_settled);
  report(after, commit);
  for (const auto& [input_id, answer] : after.answered) {
    context_.pending_replies.finish(input_id, answer);
  }
  for (const auto& input : commit.answers.progressed) context_.pending_replies.hear(input);
  for (const auto& use : commit.quota) {
    if (use.counter == store::injects_counter) ports_.counted(use.organisation_id, use.amount);
  }
  if (after.inbox_size) busy_.set(task.key, *after.inbox_size);
  watch_.notify(api::outputs_name(task.key));
  for (const auto& call : commit.calls.started) {
    if (call.due_at) {
      ports_.timer(task.key, *call.due_at);
    } else {
      ports_.call(task.key, store::target_of(call));
    }
  }
  for (const auto& follow_up : commit.follow_ups.added) ports_.timer(task.key, follow_up.due_at);
  for (const auto& schedule : after.schedules) ports_.schedule(schedule);
  const bool ramp_failed = std::ranges::any_of(commit.ramps, [](const store::RampUse& use) {
    return use.version == store::RampUse::Version::ramped && use.failures > 0;
  });
  if (ramp_failed) ports_.ramp_failed();
  if (delivers(commit)) ports_.deliver(commit, task.batch.outputs_are_known);
}

void TurnWorker::count(const AfterCommit& after, const store::SessionCommit& commit) {
  const auto& endpoint_id = commit.key.endpoint_id;
  const auto events = static_cast<double>(after.processed.size());
  const auto failed = static_cast<double>(commit.dead_letters.size());
  const auto endpoint = context_.assets.known_endpoint(endpoint_id);
  const std::string organisation = endpoint ? endpoint->organisation_id : "";
  metrics_.count(EndpointCount::events, endpoint_id, events, organisation);
  if (failed > 0) metrics_.count(EndpointCount::dead_letters, endpoint_id, failed, organisation);
  for (const auto& event : after.processed) {
    metrics_.event_waited(event.cause, event.waited);
    if (event.flow_id.empty()) continue;
    metrics_.count(FlowCount::turns, event.flow_id, 1, organisation);
    metrics_.count(FlowCount::turn_seconds, event.flow_id,
                   std::chrono::duration<double>(event.took).count(), organisation);
  }
  if (endpoint) metrics_.count(OrganisationCount::events, organisation, events);
  for (const auto& use : commit.quota) {
    if (use.counter != store::injects_counter) continue;
    metrics_.count(OrganisationCount::injects, use.organisation_id,
                   static_cast<double>(use.amount));
  }
}

void TurnWorker::report(const AfterCommit& after, const store::SessionCommit& commit) {
  if (!after.processed.empty()) count(after, commit);
  const std::string& session_id = commit.key.session_id;
  metrics_.turns.add(after.turns);
  metrics_.dead_letters.add(commit.dead_letters.size());
  metrics_.follow_ups_sent.add(after.follow_ups_sent);
  metrics_.follow_ups_dropped.add(after.follow_ups_dropped);
  for (const auto& line : after.log_lines) {
    log::info("flow", {{"sessionId", session_id}, {"message", line}});
  }
  for (const auto& letter : commit.dead_letters) {
    log::warn("dead letter", {{"sessionId", session_id},
                              {"endpointId", commit.key.endpoint_id},
                              {"traceId", letter.event.trace_id},
                              {"deadLetterId", letter.id},
                              {"reason", letter.reason}});
  }
}

// Until then no event of the Task is at work, so a crash is not attributed to it.
void TurnWorker::again_later(const TaskPtr& task, std::chrono::milliseconds delay) {
  task->noted.clear();
  auto share = share_of(context_.assets, task->key);
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    waiting_.put(std::move(share), task, std::chrono::steady_clock::now() + delay);
  }
  wake_.notify_one();
}

void TurnWorker::run_again(const std::stop_token& stop, model::Heartbeat heartbeat) {
  while (!stop.stop_requested()) {
    heartbeat.beat();
    model::fault_point("rerunner.loop");
    std::optional<TaskPtr> task;
    {
      std::unique_lock lock(mutex_);
      const auto now = std::chrono::steady_clock::now();
      task = waiting_.take(now);
      if (!task) {
        const auto due = std::min(waiting_.next_due().value_or(now + model::beat_interval),
                                  now + model::beat_interval);
        wake_.wait_until(lock, stop, due, [&] {
          const auto next = waiting_.next_due();
          return next && *next < due;
        });
        continue;
      }
    }
    retry(*task, &heartbeat);
  }
}

std::string share_of(const api::AssetsCache& assets, const model::SessionKey& key) {
  const auto endpoint = assets.known_endpoint(key.endpoint_id);
  return endpoint ? endpoint->organisation_id : key.project_id;
}

std::chrono::milliseconds pause_after_conflicts(int conflicts) {
  constexpr BackoffSettings pauses{.first = std::chrono::milliseconds(2),
                                   .max = std::chrono::milliseconds(50)};
  if (conflicts < 2) return {};
  return backoff(pauses, conflicts - 1, std::nullopt, 0);
}

void TurnWorker::stop() {
  RetryQueue<TaskPtr> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    std::swap(dropped, waiting_);
  }
  in_hand_.stop();
  rerunner_.request_stop();
  if (rerunner_.joinable()) rerunner_.join();
}

}  // namespace conversed::daemon
