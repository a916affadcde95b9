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

// Jobs: the row is the truth. A worker holds a lease with a fencing token and names it in every
// write; after a newer lease was given its writes are `conflict`. Every change of state is one
// conditional write along model::job_transitions. Thread-safe; blocks on the disk.
// Errors beside those named: `not_found`, `unavailable`, `internal`.
class Jobs {
 public:
  // Both must outlive it.
  Jobs(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  // What a write of a worker may change. Progress and step never fall: a lower value is ignored.
  struct Progress {
    int progress = 0;
    int current_step = 0;
    std::optional<nlohmann::json> data{};
  };

  struct Creation {
    std::string organisation_id{};   // whose plan counts it; empty: nobody's
    std::int64_t max_per_month = 0;  // 0: no limit
    std::optional<KeyedAnswer> keyed{};
  };
  // Stores a queued job. `conflict`, naming the other job's id alone in the message, if the project
  // has one of the type that is not over, or was done; `quota_exhausted`. If the key stands for an
  // earlier answer, that is returned and nothing is done.
  [[nodiscard]] model::Result<std::optional<KeptAnswer>> create(const model::Job& job,
                                                                const Creation& creation);
  [[nodiscard]] model::Result<std::optional<KeptAnswer>> create(const model::Job& job) {
    return create(job, Creation());
  }

  [[nodiscard]] model::Result<model::Job> get(const std::string& id) const;

  struct Filter {
    std::vector<std::string> project_ids{};  // only jobs of these
    std::optional<model::JobState> state{};
  };
  // A page of them; the newest first unless asked otherwise. Errors: as read_page in paging.h.
  [[nodiscard]] model::Result<Page<model::Job>> list(const Filter& filter,
                                                     const PageRequest& request) const;
  // What they can be sorted by.
  [[nodiscard]] static std::vector<std::string_view> sort_fields();

  // Jobs that are not over and whose lease has run out at `now`: to be taken up, or woken again.
  [[nodiscard]] model::Result<std::vector<std::string>> waiting(model::Timestamp now,
                                                                std::size_t limit) const;

  // Takes the job until `until`: a queued one becomes active. Returns it with its new token.
  // `conflict` while another lease runs or when the job is over.
  [[nodiscard]] model::Result<model::Job> lease(const std::string& id, model::Timestamp until);
  [[nodiscard]] model::Result<void> renew(const std::string& id, std::int64_t token,
                                          model::Timestamp until);

  // Ends the leases that an earlier run left, so that its jobs go on at once. Only where no other
  // daemon has this store: an old worker's writes are refused once the job is leased anew. Part
  // of a start: waits until the store works.
  [[nodiscard]] model::Result<void> end_leases();

  // Forgets jobs that ended as `cancelled` or `error` before `before`, the oldest first; returns
  // how many, at most `limit`. What is `done` stays: it stands for what it made, and names itself
  // to whoever asks for it again.
  [[nodiscard]] model::Result<std::int64_t> prune(model::Timestamp before, std::size_t limit);

  // One step's result, in the transaction of the Writer, so that what the step made is part of it.
  // `conflict` if the token is old or the job is over. A cancelling job may still go on.
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

  // Whether an operator wants the job undone, as the Writer's transaction sees it.
  [[nodiscard]] static bool is_cancelling(Writer& writer, const std::string& id);

  // An operator's wish: a queued job is cancelled at once, an active one becomes cancelling.
  // Returns the job as it is then; a job that is cancelling or cancelled stays so, one that is over
  // otherwise is `conflict`.
  [[nodiscard]] model::Result<model::Job> cancel(const std::string& id);

  // What other daemons' workers are told (store/cluster/notifications.h): the id of a job that
  // waits to be taken up, or of one whose worker has to look at it.
  static constexpr std::string_view wake_topic = "wake-job";

  // Called with a job's id once a change of it is durable, on the Committer's thread; to be set
  // before there are any.
  enum class Change : std::uint8_t { created, changed };
  using Listener = std::function<void(const std::string& id, Change change)>;
  void on_change(Listener listener) { listener_ = std::move(listener); }

 private:
  void tell(Writer& writer, const std::string& id, Change change = Change::changed) const;
  static void wake_workers(Writer& writer, const std::string& id);

  Database& database_;
  Committer& committer_;
  Listener listener_;
};

}  // namespace conversed::store
