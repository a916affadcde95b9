#pragma once

#include <functional>
#include <string>
#include <utility>

#include "daemon/jobs/job_worker.h"
#include "daemon/log/append_event.h"
#include "store/store.h"

namespace conversed::daemon {

// Calls of the jobs to other services. All but `append` may be empty.
struct BulkWorkPorts {
  AppendEvent append;
  std::function<void(const model::SessionKey&)> deliver = {};  // Deliverer::offer_earlier
  std::function<void(const model::SessionKey&)> retry = {};    // Deliverer::retry
};

// The steps of the jobs that replay or discard dead letters, or retry or drop deliveries. A job
// works on all rows that fit its filter and were there when it began, in the order of each session.
// A step examines a bounded number of rows, and its changes and the job's progress are one
// transaction. Replays of events are appended before that transaction. After a crash between the
// two they are appended again, and their claim lets one of them have effects. A job walks through
// one shard after the other. The progress is in the first; in the others the changes have a
// transaction of their own.
//
// The job's `data` has the `filter` (store/conversation/filters.h), the user (`by`), the numbers of
// `changed` and `skipped` rows, the `reasons` of skipped ones with their numbers, the place of the
// walk, and the `lease` of the last progress. The changes of a cancelled job stay. A job ends with
// an error after a hundred leases without progress. Leases that end because the log fails don't
// count. Thread-safe. Kept by: BulkWorkTest.ACrashAfterAppendsDoublesNoReplay,
// BulkWorkTest.ReplaysOfASessionKeepTheirOrder, BulkWorkTest.AReplayOutlastsAnOutageOfTheLog.
class BulkWork final : public JobSteps {
 public:
  // The store must outlive it. `clock`: the wall clock, for the ids of replays.
  BulkWork(store::Store& store, const model::Clock& clock, BulkWorkPorts ports)
      : store_(store), clock_(clock), ports_(std::move(ports)) {}

  [[nodiscard]] model::Result<void> advance(const model::Job& job, JobHold& hold) override;

 private:
  store::Store& store_;
  const model::Clock& clock_;
  const BulkWorkPorts ports_;
};

// Passes each job to the steps of its type.
class StepsByType final : public JobSteps {
 public:
  // Both must outlive it.
  StepsByType(JobSteps& set_up, JobSteps& bulk) : set_up_(set_up), bulk_(bulk) {}

  [[nodiscard]] model::Result<void> advance(const model::Job& job, JobHold& hold) override {
    return (job.type == model::proactive_setup ? set_up_ : bulk_).advance(job, hold);
  }

 private:
  JobSteps& set_up_;
  JobSteps& bulk_;
};

}  // namespace conversed::daemon
