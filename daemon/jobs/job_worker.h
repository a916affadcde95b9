#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/service/service.h"
#include "store/cluster/notifications.h"
#include "store/model/clock.h"
#include "store/model/job.h"

namespace conversed::store {
class Jobs;
}

namespace conversed::daemon {

class JobWorker;

// A job that one thread works on, and the calls of its steps to the worker. Exists while the job is
// in hand.
class JobHold {
 public:
  // After this many leases without progress a step of the job probably ends the daemon each time.
  // A set-up counts all leases since its start or since the last failed try of a request.
  static constexpr std::int64_t max_leases = 100;
  // The longest wait between two looks for an answer.
  static constexpr std::chrono::milliseconds longest_wait{60'000};

  JobHold(JobWorker& worker, std::string job_id, std::int64_t token);
  ~JobHold();
  JobHold(const JobHold&) = delete;
  JobHold& operator=(const JobHold&) = delete;

  // Waits for `pause`, or until the daemon stops, the job is changed or `notify` is called. False:
  // the steps must return now and change nothing more.
  [[nodiscard]] bool wait(std::chrono::milliseconds pause);
  // Gives the thread to other jobs after this step. The next step comes after `pause`, or earlier
  // if the job is changed. So a step that puts off checks the time again.
  void put_off(std::chrono::milliseconds pause) { pause_ = pause; }
  // Ends the current `wait`, else the next one. Thread-safe while the hold exists.
  void notify();
  // Renews the lease. False if another worker has the job or the store fails.
  [[nodiscard]] bool renew();

 private:
  friend class JobWorker;
  void notice();  // under the worker's lock

  JobWorker& worker_;
  const std::string id_;
  const std::int64_t token_;
  std::condition_variable changed_;
  bool noticed_ = false;
  std::optional<std::chrono::milliseconds> pause_;  // the step has put the job off
};

// Does the steps of one type of job. Thread-safe.
class JobSteps {
 public:
  JobSteps() = default;
  virtual ~JobSteps() = default;
  JobSteps(const JobSteps&) = delete;
  JobSteps& operator=(const JobSteps&) = delete;

  // Does the next step of the stored job in one transaction with its progress. Undoes the last step
  // if the job is to be undone. Called again until the job has ended. After an Error the job waits
  // for its next lease: the store fails, the daemon stops, or the lease is lost.
  [[nodiscard]] virtual model::Result<void> advance(const model::Job& job, JobHold& hold) = 0;
};

struct JobWorkerSettings {
  std::size_t threads = 2;  // jobs at once
  // Ids in memory, and as many of jobs that are put off. The rescuer finds the other jobs.
  std::size_t max_waiting = 1'000;
  // The time after which another worker takes a job whose worker vanished. A wait renews the lease.
  std::chrono::milliseconds lease{60'000};
  // The longest time between two looks for jobs without a worker or with an expired lease.
  std::chrono::milliseconds rescue_interval{10'000};
  std::chrono::milliseconds retention{std::chrono::hours(24 * 30)};
  std::chrono::milliseconds prune_interval{600'000};
  // The clock for the age of ended jobs (RetentionClock); must outlive it. Null: the clock of
  // leases.
  const model::Clock* retention_clock = nullptr;
};

// Runs jobs: takes a lease, does steps until the job has ended, and frees the lease. If other jobs
// wait, a job frees its lease after some steps, too, and goes on behind them. A step can put its
// job off: the job keeps its lease, but no thread, until its time comes or it is changed. The
// rescuer (any thread without a job) finds jobs that were not offered or that a worker abandoned,
// and removes old jobs.
//
// Invariants:
// - A job's row is the truth. After its commit the job is offered here, and to other daemons by a
//   notification. The rescuer finds a job that was not offered.
//   Kept by: JobWorkerTest.JobThatWasMadeBeforeTheStartIsDone.
// - A step's effects and its progress are one transaction under the lease's fencing token. So is
//   the undoing of a step. Kept by: JobWorkerTest.JobOfAWorkerThatVanishedGoesOnAfterItsLease.
// - A job always ends. A set-up that was leased a hundred times without a try of a request is
//   undone. BulkWork has its own bound.
//   Kept by: JobWorkerTest.SetUpThatWasLeasedAHundredTimesIsUndone.
// - A long job lets other jobs go first after some steps.
//   Kept by: JobWorkerTest.ShortJobEndsWhileLongOnesOfAnotherProjectRun.
// - A job that waits for a service holds no thread between its tries.
//   Kept by: JobWorkerTest.SetUpsWhoseServiceIsDownHoldUpNoOtherJob,
//   JobWorkerTest.NewJobsAndJobsThatWerePutOffTakeTurns.
//
// `offer` is thread-safe and never blocks.
class JobWorker final : public Service {
 public:
  // `clock` is the clock of leases; waits use the store's clock. `others`: in a cluster, the
  // store's notifications, by which other daemons wake this one. Null: there is no other daemon,
  // and leases of an earlier run end at the start. All must outlive it.
  JobWorker(JobWorkerSettings settings, store::Jobs& jobs, JobSteps& steps,
            const model::Clock& clock, store::Notifications* others = nullptr);
  ~JobWorker() override { stop(); }

  [[nodiscard]] model::Result<void> start() override;
  // Waits for the running steps, and frees the leases of jobs that are put off. Unfinished jobs go
  // on after the next start. If the store fails, the Committer must give up its retries first.
  void stop() override;

  // Tells that the job's creation or change has been committed.
  void offer(const std::string& job_id);

 private:
  friend class JobHold;
  // A job that is put off. The worker keeps its lease.
  struct PutOff {
    std::int64_t token = 0;
    std::chrono::steady_clock::time_point due{};
  };
  struct Task {
    std::string job_id;                // empty: it is time for a rescue
    std::optional<std::int64_t> held;  // the token of a job that was put off
  };

  void run();
  [[nodiscard]] std::optional<Task> next();
  void hear(std::string_view job_id);
  void rescue();
  enum class Outcome : std::uint8_t { left, gives_way };  // gives_way: other jobs go first
  [[nodiscard]] Outcome work(const Task& task);
  [[nodiscard]] model::Result<std::int64_t> take(const Task& task);
  [[nodiscard]] model::Result<bool> step(const model::Job& job, JobHold& hold);
  [[nodiscard]] model::Result<bool> put_off(JobHold& hold, std::chrono::milliseconds pause);
  // Under the lock. The job that was put off and is due first.
  [[nodiscard]] std::map<std::string, PutOff>::iterator first_put_off();
  [[nodiscard]] bool others_wait();
  void put_last(const std::string& job_id);

  const JobWorkerSettings settings_;
  store::Jobs& jobs_;
  JobSteps& steps_;
  const model::Clock& clock_;
  store::Notifications* const others_;

  std::mutex mutex_;
  std::condition_variable wake_;  // wakes a thread without a job
  std::deque<std::string> waiting_;
  std::map<std::string, PutOff> put_off_;
  bool new_jobs_first_ = false;  // new jobs and jobs that were put off take turns
  bool rescuing_ = false;        // a thread looks for jobs; only one does at a time
  std::vector<JobHold*> in_hand_;
  std::chrono::steady_clock::time_point next_rescue_{};
  std::chrono::steady_clock::time_point next_prune_{};
  bool stopping_ = false;
  store::Notifications::Subscription heard_;
  std::vector<std::thread> threads_;  // the last member: they use all others
};

}  // namespace conversed::daemon
