#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/idempotency/keyed_answers.h"
#include "store/model/job.h"
#include "store/model/result.h"
#include "store/paging/page.h"

namespace conversed::store {

// Jobs. The row is the truth; notifications only wake workers. Thread-safe; blocks on the disk.
// Further errors: `not_found`, `unavailable`, `internal`.
//
// A worker has a lease with a fencing token and names the token in every write. After a newer lease
// its writes are a `conflict`. Kept by: JobsTest.WorkerWithAnOldLeaseCanNotWrite. Each change of
// state is one conditional write along model::job_transitions.
// Kept by: JobsTest.StoredStatesAreThoseOfTheTable, JobsTest.CancellingJobEndsAndStaysEnded.
class Jobs : Rows {
 public:
  using Rows::Rows;

  // A worker's write. Lower values of progress and step are ignored.
  struct Progress {
    int progress = 0;
    int current_step = 0;
    std::optional<nlohmann::json> data{};
  };

  struct Creation {
    std::string organisation_id{};   // the organisation whose plan counts the job; empty: none
    std::int64_t max_per_month = 0;  // 0: no limit
    std::optional<KeyedAnswer> keyed{};
  };
  // Stores a queued job. `conflict` if the project has an unfinished job of the type, or a set-up
  // that is done; then the message is only that job's id. `quota_exhausted` if the plan is used up.
  // If the key has a kept answer, returns that and changes nothing.
  [[nodiscard]] model::Result<std::optional<KeptAnswer>> create(const model::Job& job,
                                                                const Creation& creation);
  [[nodiscard]] model::Result<std::optional<KeptAnswer>> create(const model::Job& job) {
    return create(job, Creation());
  }

  [[nodiscard]] model::Result<model::Job> get(const std::string& id) const;

  struct Filter {
    std::vector<std::string> project_ids{};  // only jobs of these projects
    std::optional<model::JobState> state{};
  };
  // A page of jobs, newest first unless the request sorts it. Errors as read_page in paging.h.
  [[nodiscard]] model::Result<Page<model::Job>> list(const Filter& filter,
                                                     const PageRequest& request) const;
  [[nodiscard]] static std::vector<std::string_view> sort_fields();

  // Unfinished jobs whose lease has ended at `now`.
  [[nodiscard]] model::Result<std::vector<std::string>> waiting(model::Timestamp now,
                                                                std::size_t limit) const;

  // Leases the job until `until`; a queued job becomes active. Returns it with its new token.
  // `conflict` while another lease runs or if the job has ended.
  [[nodiscard]] model::Result<model::Job> lease(const std::string& id, model::Timestamp until);
  [[nodiscard]] model::Result<void> renew(const std::string& id, std::int64_t token,
                                          model::Timestamp until);

  // Ends the leases of an earlier run, so that its jobs go on at once. Only for a daemon without
  // other daemons on its store. Part of a start: waits until the store works.
  [[nodiscard]] model::Result<void> end_leases();

  // Deletes at most `limit` jobs that ended before `before`, oldest first. Returns their number. A
  // set-up that is `done` stays: it refuses a second one.
  [[nodiscard]] model::Result<std::int64_t> prune(model::Timestamp before, std::size_t limit);

  // Stores a step's result in the Writer's transaction, together with the changes of the step.
  // `conflict` if the token is old or the job has ended. A cancelling job may still go on.
  [[nodiscard]] model::Result<void> step(Writer& writer, const std::string& id, std::int64_t token,
                                         const Progress& progress) const;
  [[nodiscard]] model::Result<void> step(const std::string& id, std::int64_t token,
                                         const Progress& progress);

  // Ends the job: `done`, `cancelled` or `error`. `done` sets the progress to 100.
  [[nodiscard]] model::Result<void> finish(Writer& writer, const std::string& id,
                                           std::int64_t token, model::JobState state,
                                           const std::string& fail_reason) const;
  [[nodiscard]] model::Result<void> finish(const std::string& id, std::int64_t token,
                                           model::JobState state, const std::string& fail_reason);

  // Whether an operator has cancelled the job, in the Writer's transaction.
  [[nodiscard]] static bool is_cancelling(Writer& writer, const std::string& id);

  // Cancels a queued job at once; an active job becomes cancelling. Returns the changed job. A
  // cancelling or cancelled job stays as it is; `conflict` for a job that ended otherwise.
  [[nodiscard]] model::Result<model::Job> cancel(const std::string& id);

  // The topic that sends a job's id to the workers of other daemons
  // (store/cluster/notifications.h), so that they take the job up or read its state.
  static constexpr std::string_view wake_topic = "wake-job";

  // Called on the Committer's thread with a job's id once its creation or a change is durable. Set
  // it before the first job.
  using Listener = std::function<void(const std::string& id)>;
  void on_change(Listener listener) { listener_ = std::move(listener); }

 private:
  void tell(Writer& writer, const std::string& id) const;
  static void wake_workers(Writer& writer, const std::string& id);

  Listener listener_;
};

}  // namespace conversed::store
