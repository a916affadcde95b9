#include "daemon/turns/turn_worker.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "api/live/busy_sessions.h"
#include "api/live/pending_replies.h"
#include "daemon/log/job_wake_up.h"
#include "daemon/ops/logging.h"
#include "daemon/turns/recovery.h"
#include "store/commit/usage.h"
#include "store/conversation/outbox.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/planted_faults.h"

namespace conversed::daemon {
namespace {

using model::Errc;

constexpr std::chrono::milliseconds store_retry_delay{50};
// How long the planted fault of that name keeps a position ahead of its state: past its commit.
constexpr std::chrono::milliseconds planted_delay{150};
constexpr const char* store_refuses = "the store refuses its effects";

}  // namespace

// One run from the Lanes, through as many attempts as it takes.
struct TurnWorker::Task {
  Task(queue::Run taken, queue::Finish done, LoneRuns& all, FlightRecorder* recorder)
      : run(std::move(taken)),
        key(session_of(run.key)),
        finish(std::move(done)),
        in_hand(all),
        noted(recorder) {}
  // Dropped without an outcome: the daemon stops while the store fails. What is unfinished stays in
  // the log.
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

  // Nothing of it is at work any more that could bring the daemon down.
  void leave() {
    noted.clear();
    if (std::exchange(entered, false)) in_hand.leave();
  }

  queue::Run run;
  const model::SessionKey key;
  std::optional<queue::Finish> finish;
  LoneRuns& in_hand;
  bool entered = true;  // it counts among those in hand
  bool alone = false;   // nothing else is in hand
  FlightRecorder::Notes noted;
  std::map<std::string, std::string> refused;
  bool after_conflict = false;
  std::size_t begin = 0;  // records before it are finished: only after the database refused a batch
  bool one_by_one = false;
  TurnBatch batch;
};

TurnWorker::TurnWorker(TurnBatchContext context, store::Committer& committer,
                       api::OutputWatch& watch, api::BusySessions& busy, TurnPorts ports,
                       FlightRecorder* recorder, model::Heartbeats* heartbeats)
    : context_(context),
      committer_(committer),
      watch_(watch),
      busy_(busy),
      ports_(std::move(ports)),
      recorder_(recorder),
      rerunner_(
          [this, heartbeat = model::heartbeat_of(heartbeats, "rerunner")](
              const std::stop_token& stop) mutable { run_again(stop, std::move(heartbeat)); }) {}

TurnWorker::~TurnWorker() {
  stop();
}

void TurnWorker::handle(queue::Run run, queue::Finish finish) {
  if (!run.records.empty() && std::ranges::all_of(run.records, [](const queue::LogRecord& logged) {
        return woken_job(logged.record).has_value();
      })) {
    ports_.job(*woken_job(run.records.front().record));  // one key, one job
    return finish(queue::Next::idle);
  }
  model::Heartbeat* const heartbeat = std::exchange(run.heartbeat, nullptr);
  in_hand_.enter(heartbeat);
  attempt(std::make_shared<Task>(std::move(run), std::move(finish), in_hand_, recorder_),
          heartbeat);
}

void TurnWorker::attempt(const TaskPtr& task, model::Heartbeat* heartbeat) {
  const auto& records = task->run.records;
  const std::size_t count = task->one_by_one
                                ? std::min<std::size_t>(1, records.size() - task->begin)
                                : records.size() - task->begin;
  const auto begun = std::chrono::steady_clock::now();
  auto batch =
      build_turn_batch(context_, {.key = task->key,
                                  .records = std::span(records).subspan(task->begin, count),
                                  .spill = task->run.spill,
                                  .alone = task->alone,
                                  .refused = task->refused,
                                  .noted = &task->noted,
                                  .one_start = task->one_by_one,
                                  .after_conflict = task->after_conflict,
                                  .heartbeat = heartbeat});
  if (!batch) {
    if (batch.error().code == Errc::conflict) {
      ports_.fatal(batch.error());
      return;  // the task is abandoned
    }
    if (batch.error().code != Errc::unavailable && batch.error().code != Errc::timed_out) {
      log::error("session can't be read", {{"error", batch.error().message}});
    } else {
      committer_.probe();  // Turns that can't be read write nothing that would show it
    }
    again_later(task, store_retry_delay);
    return;
  }
  if (batch->wants_alone) return run_alone(task);
  task->batch = std::move(*batch);
  if (task->batch.after.turns > 0) ports_.ran(std::chrono::steady_clock::now() - begun);
  if (!task->batch.changes) {
    after_commit(task, store::Outcome::committed);
    return;
  }
  if (model::planted("position_before_state")) {
    task->done(queue::Next::idle);
    // Some stay behind for longer than the position's commit takes to come: else the fault would
    // show by luck only.
    static std::atomic<unsigned> turns{0};
    if (turns.fetch_add(1) % 16 == 0) std::this_thread::sleep_for(planted_delay);
  }
  model::fault_point("turn.before_submit");
  committer_.submit(std::move(task->batch.commit),
                    [this, task](store::Outcome outcome) { after_commit(task, outcome); });
}

// On the rerunner's thread, once all others have left: none of them waits for this one.
void TurnWorker::run_alone(const TaskPtr& task) {
  task->entered = false;
  in_hand_.run_alone([this, task] {
    task->entered = true;
    task->alone = true;
    again_later(task, {});
  });
}

void TurnWorker::after_commit(const TaskPtr& task, store::Outcome outcome) {
  if (outcome != store::Outcome::committed) {
    if (outcome == store::Outcome::conflict) {
      ++counts_.conflicts;
      task->after_conflict = true;
    } else if (task->one_by_one) {
      // Alone it was refused, so it is the one; if it is so without its effects, the record that
      // waits behind it.
      const bool fresh = !task->batch.first_started.empty() &&
                         task->refused.emplace(task->batch.first_started, store_refuses).second;
      if (!fresh && task->begin < task->run.records.size()) {
        task->refused.emplace(task->run.records[task->begin].record.id, store_refuses);
      }
    } else {
      task->one_by_one = true;
    }
    // At once after a conflict; a refusal that is not found out in two steps must not keep the disk
    // busy.
    again_later(task, outcome == store::Outcome::conflict ? std::chrono::milliseconds(0)
                                                          : store_retry_delay);
    return;
  }
  model::fault_point("turn.after_commit");
  let_out(*task);
  go_on(task);
}

// After what the batch has done is out.
void TurnWorker::go_on(const TaskPtr& task) {
  if (task->one_by_one && task->begin + 1 < task->run.records.size()) {
    ++task->begin;
    again_later(task, {});
    return;
  }
  task->leave();
  task->done(task->batch.drain_more ? queue::Next::again : queue::Next::idle);
}

void TurnWorker::let_out(const Task& task) {
  const AfterCommit& after = task.batch.after;
  if (context_.recovery != nullptr) context_.recovery->settled(after.settled);
  report(task.key, after);
  for (const auto& [input_id, answer] : after.answered) {
    if (answer) {
      context_.pending_replies.finish(input_id, *answer);
    } else {
      context_.pending_replies.fail(input_id, answer.error());
    }
  }
  for (const auto& input : after.progressed) context_.pending_replies.hear(input);
  for (const auto& use : after.injects) ports_.counted(use.organisation_id, use.amount);
  if (after.inbox_size) busy_.set(task.key, *after.inbox_size);
  if (after.speaks) watch_.notify(task.key);
  for (const auto& target : after.targets) ports_.call(task.key.project_id, target);
  for (const auto due_at : after.timers) ports_.timer(due_at);
  for (const auto& schedule : after.schedules) ports_.schedule(schedule);
  if (after.delivers) ports_.deliver(task.key);
}

void TurnWorker::report(const model::SessionKey& key, const AfterCommit& after) {
  counts_.turns += after.turns;
  counts_.dead_letters += after.dead_letters.size();
  counts_.follow_ups_sent += after.follow_ups_sent;
  counts_.follow_ups_dropped += after.follow_ups_dropped;
  for (const auto& line : after.log_lines) {
    log::info("flow", {{"sessionId", key.session_id}, {"message", line}});
  }
  for (const auto& letter : after.dead_letters) {
    log::warn("dead letter", {{"sessionId", key.session_id},
                              {"traceId", letter.trace_id},
                              {"deadLetterId", letter.id},
                              {"reason", letter.reason}});
  }
}

// Meanwhile nothing of it is at work, so that an end of the process is not its doing.
void TurnWorker::again_later(const TaskPtr& task, std::chrono::milliseconds delay) {
  task->noted.clear();
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    waiting_.push_back({std::chrono::steady_clock::now() + delay, task});
  }
  wake_.notify_one();
}

void TurnWorker::run_again(const std::stop_token& stop, model::Heartbeat heartbeat) {
  while (!stop.stop_requested()) {
    heartbeat.beat();
    model::fault_point("rerunner.loop");
    TaskPtr task;
    {
      std::unique_lock lock(mutex_);
      const auto earliest = [this] {
        return std::min_element(waiting_.begin(), waiting_.end(),
                                [](const Waiting& a, const Waiting& b) { return a.due < b.due; });
      };
      if (waiting_.empty()) {
        wake_.wait_for(lock, stop, model::beat_interval, [this] { return !waiting_.empty(); });
        continue;
      }
      const auto next = earliest();
      if (const auto due = next->due; due > std::chrono::steady_clock::now()) {
        wake_.wait_until(lock, stop, due, [&] { return earliest()->due < due; });
        continue;
      }
      task = std::move(next->task);
      waiting_.erase(next);
    }
    attempt(task, &heartbeat);
  }
}

void TurnWorker::stop() {
  std::deque<Waiting> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(waiting_);
  }
  in_hand_.stop();
  rerunner_.request_stop();
  if (rerunner_.joinable()) rerunner_.join();
}

}  // namespace conversed::daemon
