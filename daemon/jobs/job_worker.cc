#include "daemon/jobs/job_worker.h"

#include <algorithm>
#include <utility>

#include "daemon/ops/logging.h"
#include "store/jobs/jobs.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/thread_name.h"

namespace conversed::daemon {

using model::Errc;
using model::Job;
using model::Result;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr std::size_t jobs_a_rescue = 100;
constexpr std::size_t pruned_at_once = 500;
// After so many steps of a job waiting jobs go first.
constexpr int steps_at_once = 20;

}  // namespace

JobHold::JobHold(JobWorker& worker, const Job& job)
    : worker_(worker), id_(job.id), token_(job.fencing_token) {
  const std::lock_guard lock(worker_.mutex_);
  worker_.in_hand_.push_back(this);
}

JobHold::~JobHold() {
  const std::lock_guard lock(worker_.mutex_);
  std::erase(worker_.in_hand_, this);
}

bool JobHold::wait(milliseconds pause) {
  // Waits for a third of the lease at most before it renews the lease: one renewal may fail.
  const auto end = SteadyClock::now() + pause;
  for (;;) {
    const auto until = std::min(end, SteadyClock::now() + worker_.settings_.lease / 3);
    {
      std::unique_lock lock(worker_.mutex_);
      changed_.wait_until(lock, until, [this] { return noticed_ || worker_.stopping_; });
      if (worker_.stopping_) return false;
      if (std::exchange(noticed_, false)) return true;
    }
    if (SteadyClock::now() >= end) return true;
    if (!renew()) return false;
  }
}

void JobHold::notify() {
  const std::lock_guard lock(worker_.mutex_);
  notice();
}

bool JobHold::renew() {
  return worker_.jobs_.renew(id_, token_, worker_.clock_.now() + worker_.settings_.lease)
      .has_value();
}

void JobHold::notice() {
  noticed_ = true;
  changed_.notify_all();
}

JobWorker::JobWorker(JobWorkerSettings settings, store::Jobs& jobs, JobSteps& steps,
                     const model::Clock& clock, store::Notifications* others)
    : settings_(settings), jobs_(jobs), steps_(steps), clock_(clock), others_(others) {}

Result<void> JobWorker::start() {
  if (!threads_.empty() || stopping_) {
    return model::fail(Errc::conflict, "the job worker runs already");
  }
  if (others_ == nullptr) {
    if (auto ended = jobs_.end_leases(); !ended) return ended;
  } else {
    heard_ = others_->subscribe(std::string(store::Jobs::wake_topic),
                                [this](std::string_view job_id) { hear(job_id); });
  }
  for (std::size_t i = 0; i < std::max<std::size_t>(1, settings_.threads); ++i) {
    threads_.emplace_back([this] { run(); });
  }
  return {};
}

void JobWorker::stop() {
  heard_ = {};
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (JobHold* hold : in_hand_) hold->notice();
  }
  wake_.notify_all();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

// The rescuer finds the jobs whose notification was lost.
void JobWorker::hear(std::string_view job_id) {
  if (!job_id.empty()) return offer(std::string(job_id));
  {
    const std::lock_guard lock(mutex_);
    next_rescue_ = {};
  }
  wake_.notify_one();
}

void JobWorker::offer(const std::string& job_id) {
  {
    const std::lock_guard lock(mutex_);
    // A worker of this daemon made the change, or has to see it.
    for (JobHold* hold : in_hand_) {
      if (hold->id_ == job_id) return hold->notice();
    }
    if (waiting_.size() >= settings_.max_waiting) return;
    if (std::ranges::find(waiting_, job_id) != waiting_.end()) return;
    waiting_.push_back(job_id);
  }
  wake_.notify_one();
}

void JobWorker::run() {
  model::name_this_thread("job worker");
  while (const auto id = next()) {
    if (id->empty()) {
      rescue();
      {
        const std::lock_guard lock(mutex_);
        rescuing_ = false;
      }
      wake_.notify_all();
    } else if (work(*id) == Outcome::put_off) {
      put_last(*id);
    }
  }
}

// The id of the next job. An empty id: it is time for a rescue. Nullopt: the worker stops.
std::optional<std::string> JobWorker::next() {
  std::unique_lock lock(mutex_);
  const auto due = [this] { return !rescuing_ && SteadyClock::now() >= next_rescue_; };
  while (!stopping_ && waiting_.empty() && !due()) {
    rescuing_ ? wake_.wait(lock) : (void)wake_.wait_until(lock, next_rescue_);
  }
  if (stopping_) return std::nullopt;
  // A rescue comes before the waiting jobs: while long jobs let each other go first, there is
  // always a waiting job.
  if (due()) {
    rescuing_ = true;
    next_rescue_ = SteadyClock::now() + settings_.rescue_interval;
    return std::string();
  }
  std::string id = std::move(waiting_.front());
  waiting_.pop_front();
  return id;
}

void JobWorker::rescue() {
  auto found = jobs_.waiting(clock_.now(), jobs_a_rescue);
  if (!found) {
    log::warn("jobs can't be read", {{"error", found.error().message}});
    return;
  }
  for (const auto& id : *found) offer(id);
  {
    const std::lock_guard lock(mutex_);
    if (SteadyClock::now() < next_prune_) return;
    next_prune_ = SteadyClock::now() + settings_.prune_interval;
  }
  const auto& ages = settings_.retention_clock == nullptr ? clock_ : *settings_.retention_clock;
  const auto pruned = jobs_.prune(ages.now() - settings_.retention, pruned_at_once);
  if (!pruned) log::warn("old jobs can't be removed", {{"error", pruned.error().message}});
}

// Whether a job waits that no thread works on.
bool JobWorker::others_wait() {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(waiting_, [this](const auto& id) {
    return std::ranges::none_of(in_hand_, [&](const JobHold* hold) { return hold->id_ == id; });
  });
}

// The rescuer finds the job if the worker stops before its turn.
void JobWorker::put_last(const std::string& job_id) {
  {
    const std::lock_guard lock(mutex_);
    // The job's own lease may have offered it.
    std::erase(waiting_, job_id);
    waiting_.push_back(job_id);
  }
  wake_.notify_one();
}

// Works on the job until it has ended, can't go on or is put off.
JobWorker::Outcome JobWorker::work(const std::string& job_id) {
  auto job = jobs_.lease(job_id, clock_.now() + settings_.lease);
  // Another worker has the job, the job has ended, or the store fails. Then the rescuer finds the
  // job.
  if (!job) return Outcome::left;
  model::fault_point("job.after_lease");
  const std::int64_t token = job->fencing_token;
  JobHold hold(*this, *job);
  for (int steps = 0; !model::is_final(job->state); ++steps) {
    if (steps >= steps_at_once && others_wait()) {
      if (!jobs_.renew(job_id, token, clock_.now())) return Outcome::left;
      return Outcome::put_off;
    }
    Result<void> advanced = model::fail(Errc::unavailable, "the lease is lost");
    if (hold.renew()) advanced = steps_.advance(*job, hold);
    Result<Job> next = advanced ? jobs_.get(job_id) : model::fail(advanced.error());
    if (!next) {
      log::warn("job left to be taken up again",
                {{"jobId", job_id}, {"reason", next.error().message}});
      // The rescuer takes the job up after a pause, or the next run does.
      (void)jobs_.renew(job_id, token, clock_.now());
      return Outcome::left;
    }
    job = std::move(next);
    if (job->fencing_token != token) return Outcome::left;
  }
  log::info(
      "job is over",
      {{"jobId", job_id}, {"status", model::to_string(job->state)}, {"reason", job->fail_reason}});
  return Outcome::left;
}

}  // namespace conversed::daemon
