#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
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

// What a job's worker gives to whoever does its steps. One job, one thread; lives as long as the
// job is in hand.
class JobHold {
 public:
  JobHold() = default;
  virtual ~JobHold() = default;
  JobHold(const JobHold&) = delete;
  JobHold& operator=(const JobHold&) = delete;

  // Waits for `pause` or until something happened that the steps have to look at: the daemon stops,
  // somebody changed the job, or `notify` was called. False: stop now, leave all as it is.
  [[nodiscard]] virtual bool wait(std::chrono::milliseconds pause) = 0;
  // Ends a `wait`, the next one if none goes on. Thread-safe; the hold has to be there still.
  virtual void notify() = 0;
  // Makes the lease last anew; false if the job was given to another worker or the store fails.
  [[nodiscard]] virtual bool renew() = 0;
};

// Does the steps of one type of job. Thread-safe.
class JobSteps {
 public:
  JobSteps() = default;
  virtual ~JobSteps() = default;
  JobSteps(const JobSteps&) = delete;
  JobSteps& operator=(const JobSteps&) = delete;

  // Does the next step of the job, as it is stored, in one transaction with its progress; or, if
  // the job is to be undone, undoes the last one. Called again until the job is over. An Error
  // leaves the job to the next lease: the store fails, the daemon stops, or the lease is lost.
  [[nodiscard]] virtual model::Result<void> advance(const model::Job& job, JobHold& hold) = 0;
};

struct JobWorkerSettings {
  std::size_t threads = 2;          // jobs at once
  std::size_t max_waiting = 1'000;  // known to wait; others are found by the rescuer
  // After it a job whose worker vanished goes on elsewhere. A wait renews it.
  std::chrono::milliseconds lease{60'000};
  // Jobs that nobody told us of, or whose lease ran out, are looked for at least so often.
  std::chrono::milliseconds rescue_interval{5'000};
  // Has a job that waits brought to one of those who run jobs, by the log: it comes by `offer`,
  // here or elsewhere. Called on a thread of the worker; must not block. Empty: taken up here.
  std::function<void(const std::string& job_id)> wake{};
  std::chrono::milliseconds retention{std::chrono::hours(24 * 30)};
  std::chrono::milliseconds prune_interval{60'000};
  // Of the age of jobs that are over (RetentionClock); must outlive it. Null: as of leases.
  const model::Clock* retention_clock = nullptr;
};

// Runs jobs: takes a lease, has steps done until the job is over, and lets go. The row is the
// truth; `offer` only wakes. The rescuer, which is whichever thread has nothing to do, finds what
// was not offered and what a worker left behind, has it woken again, and forgets old jobs.
//
// `offer` is thread-safe and never blocks.
class JobWorker final : public Service {
 public:
  // `clock` is that of leases, the store's own of waits. `others`: the notifications of the store,
  // if other daemons have the same; they wake this one by it. Null if there are none: then leases
  // of an earlier run end at the start. All must outlive it.
  JobWorker(JobWorkerSettings settings, store::Jobs& jobs, JobSteps& steps,
            const model::Clock& clock, store::Notifications* others = nullptr);
  ~JobWorker() override;

  [[nodiscard]] model::Result<void> start() override;
  // Ends after the step in hand; what is unfinished goes on after the next start. While the store
  // fails, the Committer has to have given up retrying before.
  void stop() override;
  [[nodiscard]] std::string_view name() const override;

  // The job was made, or changed, and that is committed.
  void offer(const std::string& job_id);

 private:
  class Hold;
  void run();
  [[nodiscard]] std::optional<std::string> next();
  void hear(std::string_view job_id);
  void rescue();
  [[nodiscard]] bool knows(const std::string& job_id);
  void work(const std::string& job_id);

  const JobWorkerSettings settings_;
  store::Jobs& jobs_;
  JobSteps& steps_;
  const model::Clock& clock_;
  store::Notifications* const others_;

  std::mutex mutex_;
  std::condition_variable wake_;  // a thread without a job
  std::deque<std::string> waiting_;
  std::set<std::string> known_;  // those in `waiting_`
  std::set<std::string> being_leased_;
  bool rescuing_ = false;        // one thread at a time does
  std::set<std::string> woken_;  // by the last rescue; that thread's
  std::vector<Hold*> in_hand_;
  std::chrono::steady_clock::time_point next_rescue_{};
  std::chrono::steady_clock::time_point next_prune_{};
  bool stopping_ = false;
  store::Notifications::Subscription heard_;
  std::vector<std::thread> threads_;  // the last member: they use all others
};

}  // namespace conversed::daemon
