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

JobHold::JobHold(JobWorker& worker, std::string job_id, std::int64_t token)
    : worker_(worker), id_(std::move(job_id)), token_(token) {
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
  std::map<std::string, PutOff> put_off;
  {
    const std::lock_guard lock(mutex_);
    put_off.swap(put_off_);
  }
  for (const auto& [job_id, job] : put_off) {
    (void)jobs_.renew(job_id, job.token, clock_.now());
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
    if (const auto job = put_off_.find(job_id); job != put_off_.end()) {
      job->second.due = {};
    } else if (waiting_.size() >= settings_.max_waiting ||
               std::ranges::find(waiting_, job_id) != waiting_.end()) {
      return;
    } else {
      waiting_.push_back(job_id);
    }
  }
  wake_.notify_one();
}

void JobWorker::run() {
  model::name_this_thread("job worker");
  while (const auto task = next()) {
    if (task->job_id.empty()) {
      rescue();
      {
        const std::lock_guard lock(mutex_);
        rescuing_ = false;
      }
      wake_.notify_all();
    } else if (work(*task) == Outcome::gives_way) {
      put_last(task->job_id);
    }
  }
}

std::map<std::string, JobWorker::PutOff>::iterator JobWorker::first_put_off() {
  return std::ranges::min_element(put_off_, {}, [](const auto& each) { return each.second.due; });
}

// Waits for the next job. Nullopt: the worker stops.
std::optional<JobWorker::Task> JobWorker::next() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto now = SteadyClock::now();
    // A rescue comes before the waiting jobs: while long jobs let each other go first, there is
    // always a waiting job.
    if (!rescuing_ && now >= next_rescue_) {
      rescuing_ = true;
      next_rescue_ = now + settings_.rescue_interval;
      return Task();
    }
    const auto first = first_put_off();
    const bool is_due = first != put_off_.end() && first->second.due <= now;
    if (is_due && (waiting_.empty() || !new_jobs_first_)) {
      new_jobs_first_ = true;
      Task task{first->first, first->second.token};
      put_off_.erase(first);
      return task;
    }
    if (!waiting_.empty()) {
      new_jobs_first_ = false;
      Task task{std::move(waiting_.front()), std::nullopt};
      waiting_.pop_front();
      return task;
    }
    // While another thread looks for jobs, its end wakes this one.
    auto until = rescuing_ ? now + settings_.rescue_interval : next_rescue_;
    if (first != put_off_.end()) until = std::min(until, first->second.due);
    wake_.wait_until(lock, until);
  }
  return std::nullopt;
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
  const auto first = first_put_off();
  if (first != put_off_.end() && first->second.due <= SteadyClock::now()) return true;
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

// The token of the lease. A job that was put off goes on under its lease, unless another worker has
// taken it.
Result<std::int64_t> JobWorker::take(const Task& task) {
  const auto until = clock_.now() + settings_.lease;
  if (task.held) {
    auto renewed = jobs_.renew(task.job_id, *task.held, until);
    return renewed ? Result<std::int64_t>(*task.held) : model::fail(renewed.error());
  }
  auto job = jobs_.lease(task.job_id, until);
  return job ? Result<std::int64_t>(job->fencing_token) : model::fail(job.error());
}

// False: the job has changed meanwhile and goes on at once.
Result<bool> JobWorker::put_off(JobHold& hold, milliseconds pause) {
  const auto token = hold.token_;
  const auto rescuable = clock_.now() + pause;
  // Another worker gets the job only if this one vanishes.
  auto renewed = jobs_.renew(hold.id_, token, rescuable + settings_.lease);
  if (!renewed) return model::fail(renewed.error());
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(hold.noticed_, false)) return false;
    if (put_off_.size() < settings_.max_waiting) {
      std::erase(in_hand_, &hold);
      std::erase(waiting_, hold.id_);  // its own lease may have offered it
      put_off_[hold.id_] = {token, SteadyClock::now() + pause};
      wake_.notify_all();  // waiting threads wait until this time at most
      return true;
    }
  }
  renewed = jobs_.renew(hold.id_, token, rescuable);
  return renewed ? Result<bool>(true) : model::fail(renewed.error());
}

// True: the step has put the job off.
Result<bool> JobWorker::step(const Job& job, JobHold& hold) {
  if (!hold.renew()) return model::fail(Errc::unavailable, "the lease is lost");
  if (auto done = steps_.advance(job, hold); !done) return model::fail(done.error());
  const auto pause = std::exchange(hold.pause_, std::nullopt);
  return pause ? put_off(hold, *pause) : false;
}

// Works on the job until it has ended, can't go on, gives way or is put off.
JobWorker::Outcome JobWorker::work(const Task& task) {
  const std::string& job_id = task.job_id;
  const auto token = take(task);
  // Another worker has the job, the job has ended, or the store fails. Then the rescuer finds the
  // job.
  if (!token) return Outcome::left;
  model::fault_point("job.after_lease");
  JobHold hold(*this, job_id, *token);
  Result<bool> rests = false;
  for (int steps = 0;; ++steps) {
    // Read after the hold exists and after each step, so that no change is missed.
    const Result<Job> job = rests ? jobs_.get(job_id) : model::fail(rests.error());
    if (!job) {
      log::warn("job left to be taken up again",
                {{"jobId", job_id}, {"reason", job.error().message}});
      // The rescuer takes the job up after a pause, or the next run does.
      (void)jobs_.renew(job_id, *token, clock_.now());
      return Outcome::left;
    }
    if (job->fencing_token != *token) return Outcome::left;
    if (model::is_final(job->state)) {
      log::info("job is over", {{"jobId", job_id},
                                {"status", model::to_string(job->state)},
                                {"reason", job->fail_reason}});
      return Outcome::left;
    }
    if (steps >= steps_at_once && others_wait()) {
      if (!jobs_.renew(job_id, *token, clock_.now())) return Outcome::left;
      return Outcome::gives_way;
    }
    rests = step(*job, hold);
    if (rests && *rests) return Outcome::left;
  }
}

}  // namespace conversed::daemon
