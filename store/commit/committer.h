#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "store/commit/partition_gate.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/event.h"
#include "store/model/result.h"
#include "store/model/schedule.h"
#include "store/model/session.h"
#include "store/runtime/guarded.h"
#include "store/sql/as_result.h"

namespace conversed::store {

class Connection;
class Database;
struct EncodedCommit;

// An event in its session's inbox, as the parts of its log record.
struct InboxEvent {
  std::string event_id;
  std::string type;
  std::string trace_id;
  std::string value;  // model::encode_value

  bool operator==(const InboxEvent&) const = default;
};

// An event that could not be processed, with its reason.
struct NewDeadLetter {
  std::string id;  // model::new_id()
  InboxEvent event;
  std::string reason;  // for operators; contains no secret
  // Where the event's Turn failed. Empty and 0: no Flow ran it.
  std::string flow{};
  std::int64_t flow_version = 0;
  std::string node{};
  int attempts = 0;  // tries of an output that have failed
};

// How long answers to keyed requests are kept.
inline constexpr std::chrono::milliseconds answer_lifetime = std::chrono::hours(24);

// The first 2xx answer to a keyed `POST /{URLToken}`. A request that repeats the key gets it again.
// Without a body: the input has failed and its key is free.
struct NewAnswer {
  std::string input_id;
  std::optional<std::string> body;
  model::Timestamp expires_at{};
};

// An input whose answers are in the SessionCommit.
struct Uncut {
  std::string input_id;
  model::Timestamp until{};  // the client's deadline, by the clock of timers
};

// Cuts an input: from its SessionCommit on, the input's outputs are deliveries.
struct NewCut {
  std::string input_id;
  std::int64_t behind = 0;  // outputs with a number up to this one are its answer
};

struct QuotaUse {
  std::string organisation_id;
  std::string counter;  // "injects", "jobs", ...
  std::int64_t amount = 1;
};

// Turns of a version of a Flow in a ramp. If the ramp has ended meanwhile, they do not change its
// counts (store/assets/ramps.cc).
struct RampUse {
  enum class Version : std::uint8_t { ramped, stable };

  std::string ramp_id;
  Version version = Version::ramped;
  std::int64_t turns = 0;
  std::int64_t failures = 0;  // of these: became dead letters, or met a failed call
};

// The user's profile: the version that the Turns have read, and their change of it.
struct ProfileUse {
  std::optional<std::int64_t> read_version;  // checked if set; 0: there was no profile
  std::optional<nlohmann::json> data;        // written if set; needs `read_version`
};

// Changes to the calls and timers for which the session waits.
struct CallChanges {
  std::vector<model::PendingCall> started;
  std::vector<std::string> cancelled;  // ids of stored calls and timers; a missing one is no error
  // All calls and timers of the session lose their claim before other changes are written.
  bool all_abandoned = false;
};

struct FollowUpChanges {
  // The session's waiting follow-ups, and outputs of earlier follow-ups whose delivery has not
  // begun, are deleted before `added` are stored.
  bool cancelled = false;
  std::vector<model::FollowUp> added;
};

struct InboxChanges {
  std::int64_t removed = 0;       // how many of the oldest events are removed, before `added`
  std::vector<InboxEvent> added;  // behind the present events, in this order
};

// Changes for waiting clients of `POST /{URLToken}`.
struct AnswerChanges {
  std::vector<NewAnswer> kept;
  // Inputs whose outputs in this SessionCommit are their answer. If one of them is cut
  // (store/conversation/answers.h), or its deadline has passed, the SessionCommit is a conflict.
  std::vector<Uncut> uncut;
  std::vector<NewCut> cuts;
  // Inputs that are at rest, cut, or taken up: their waiting clients look again.
  std::vector<std::string> progressed;
};

// A step of a receipt (store/conversation/receipts.h).
struct NewReceiptRow {
  // Only the first step of an event has it.
  struct First {
    std::string trace_id;
    std::string key;       // of the event's Idempotency-Key (model::Origin); or empty
    std::string previous;  // the session's event with a receipt before this one; or empty
  };
  std::string input_id;
  std::optional<First> first{};
  std::string body;
};

// A later step of a receipt, which a service adds with its mark.
struct ReceiptMark {
  std::string input_id;
  std::string body;
  model::Timestamp at{};
};

// A delivery that worked at the first try. A step that tells nothing of a user.
struct PlainDelivery {
  std::string input_id;
  std::int64_t seq = 0;  // of the output
  model::Timestamp at{};
  std::chrono::microseconds took{};
  int status = 0;  // of the answer
};

// The changes of one turn batch to its session. They become durable together or not at all.
struct SessionCommit {
  model::SessionKey key;
  // The session's version before the Turns; 0: the session must not exist. A later SessionCommit of
  // the same session may be submitted before this one is committed, with `expected_version` one
  // higher. If this one is a conflict, the later one is a conflict as well.
  std::int64_t expected_version = 0;
  // The session after the Turns. The commit sets `version` (one more than expected) and
  // `inbox_size`. `position` counts as finished in the log.
  model::Session after;
  ProfileUse profile;

  std::vector<model::Claim> claims;  // if a claim is missing, the SessionCommit is a conflict
  std::vector<model::ScheduleFired> schedules_fired;  // one for each claim of a schedule
  CallChanges calls;
  FollowUpChanges follow_ups;
  InboxChanges inbox;

  std::vector<model::Output> outputs;  // `seq` set; `pending` ones are due at once
  // How far the clock of timers was ahead of the wall clock when the outputs were made. Their age
  // is measured by the clock of timers.
  std::chrono::milliseconds timers_ahead{0};
  AnswerChanges answers;

  std::vector<NewDeadLetter> dead_letters;
  // Events that ran alone after a crash (store/conversation/attempts.h): their counts are deleted.
  std::vector<std::string> attempts_settled;
  std::vector<QuotaUse> quota;
  std::vector<RampUse> ramps;
  std::vector<NewReceiptRow> receipts;

  // The Committer sets it. No reader has seen the commit's rows at this time or before.
  std::chrono::steady_clock::time_point unseen_until{};
};

enum class Outcome : std::uint8_t {
  committed,  // durable, with all effects
  // No change: version, profile or a claim was not as expected, or the session lies on another
  // server now. Load and run again.
  conflict,
  poison,  // no change: the database refuses these values
};

// One moment by both clocks (daemon/timers/timer_clock.h).
struct Now {
  model::Timestamp wall{};    // for times that people see
  model::Timestamp timers{};  // for due times and expiry
};

// The database inside one transaction; valid only inside the closure.
class Writer {
 public:
  Writer(Connection& connection, Now now, const PartitionGate& gate)
      : connection_(connection), now_(now), gate_(gate) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  [[nodiscard]] Connection& connection() const { return connection_; }
  // Both are constant within a batch.
  [[nodiscard]] model::Timestamp now() const { return now_.wall; }
  [[nodiscard]] model::Timestamp timer_now() const { return now_.timers; }

  // `unavailable` if the session lies on another server now. A write that answers a request about a
  // session begins with it. `key`: encoded.
  [[nodiscard]] model::Result<void> check_place(std::string_view key) const {
    return gate_.check(key);
  }

  // Calls `told` once the transaction is known to be durable, unless this work fails. The call is
  // on the Committer's thread, before the caller's `done` and before callbacks of later
  // transactions. It may come long after the caller got `timed_out`, so all objects that `told`
  // uses have to live as long as the Committer runs. It must not block.
  void on_commit(std::function<void()> told) { on_commit_.push_back(std::move(told)); }
  [[nodiscard]] std::vector<std::function<void()>> take_on_commit() {
    return std::exchange(on_commit_, {});
  }

 private:
  Connection& connection_;
  Now now_;
  const PartitionGate& gate_;
  std::vector<std::function<void()>> on_commit_;
};

struct CommitterSettings {
  std::size_t max_batch = 512;                // commits, writes and marks in one transaction
  std::size_t max_waiting = 65536;            // then `submit` and `write` block
  std::chrono::milliseconds min_backoff{10};  // between tries while the disk or database fails
  std::chrono::milliseconds max_backoff{1000};
  std::chrono::milliseconds mark_wait{20};  // the longest wait of a mark for a commit or write
  // With PostgreSQL, the wait of a transaction for further commits if the last one had several. Its
  // statements then serve more of them. A full batch does not wait.
  std::chrono::milliseconds commit_wait{2};
  // Must outlive the Committer. Null: the constructor's `clock`.
  const model::Clock* timer_clock = nullptr;
  // Checks a database that was away when it was opened. Called on the Committer's thread before its
  // first transaction, until it succeeds; an error counts as a failure of the store. Empty: there
  // is nothing to check. May throw SqlError.
  std::function<model::Result<void>()> admit{};

  [[nodiscard]] Now now(const model::Clock& clock) const {
    return {clock.now(), (timer_clock == nullptr ? clock : *timer_clock).now()};
  }
};

// Group commit. One thread writes all waiting commits, writes and marks in one transaction, commits
// it, and then calls back in the order of submission. Marks wait for a commit or write, up to
// `mark_wait`, so that they take no transaction of their own while there are others.
//
// - With PostgreSQL a transaction waits for further commits under load (`commit_wait`).
//   Kept by: PostgresTest.CommitsWaitForOthersIfTheLastTransactionHadSeveral.
// - A store failure (disk full, locked, I/O error) never counts as an attempt: the batch is rolled
//   back, `healthy()` turns false, and the same batch is tried again until it works or the
//   Committer stops. Kept by: FailureTest.FullDiskHealsAndLosesNothing.
// - If the database refuses a value, bisection finds its SessionCommit: only that one is `poison`.
//   Kept by: FailureTest.PoisonAmongAHundredIsFoundAndAllOthersCommit.
// - A write that exceeds the server's time limit gets `timed_out`; the others of its transaction
//   are committed. A commit or mark that exceeds it is tried again.
//   Kept by: PostgresTest.ASlowWriteTimesOutAndDelaysNoOthers,
//   PostgresTest.AMarkOutlivesTheTimeLimit.
// - A COMMIT that reported an error may have worked. Each transaction writes its number into
//   `writers`. Before a batch is tried again, a transaction that writes reads that number: it waits
//   until the server has finished the lost connection's COMMIT.
//   Kept by: PostgresTest.CommitWhoseSessionBreaksIsFoundOutAndDoneOnce.
//
// Thread-safe except `start` and `stop`. Callbacks run on the Committer's thread: they must neither
// block nor call `write_and_wait`. A write's `on_commit` functions run before its `done`. Two
// writes of one transaction have no order.
class Committer {
 public:
  // `commit` is the submitted one without context, flow state, execution, and the texts and data of
  // follow-ups.
  using Done = std::function<void(Outcome, const SessionCommit& commit)>;
  using Work = std::function<model::Result<void>(Writer&)>;
  using WriteDone = std::function<void(model::Result<void>)>;
  // `none`: fails fast while the store fails. `until_it_works`: waits until the store works, or the
  // Committer stops or ends its retries.
  enum class Patience : std::uint8_t { none, until_it_works };

  // Both must outlive the Committer.
  Committer(Database& database, const model::Clock& clock, CommitterSettings settings = {});
  ~Committer();

  void start();

  // Commits all that was submitted, then stops. While the store fails, it gives up after the
  // current try: the remaining commits are not durable and their callbacks are not called (writes
  // get `unavailable`). Tolerates double stop and stop without start.
  void stop();

  // From now on a failed transaction is not tried again. Its writes are given up as by `stop`, so
  // that no caller waits for a failing store. Other transactions are committed as before.
  void stop_retrying();

  // Blocks while `max_waiting` items wait. After `stop` the SessionCommit is dropped without a
  // callback.
  void submit(SessionCommit commit, Done done);
  void submit(std::unique_ptr<EncodedCommit> encoded, Done done);

  // Runs `work` inside the next transaction, under a savepoint. If it returns an error, only its
  // own changes are undone and `done` gets the error. `work` may run more than once (a batch is
  // tried again), so it may only use the Writer and assign. With `Patience::none`, while the store
  // fails, the error is `unavailable` (no change was or will be made) or `timed_out` (its COMMIT
  // failed, and the outcome is not known).
  void write(Work work, WriteDone done, Patience patience = Patience::until_it_works);

  // The same for callers that may block; never call it from a callback. `work` returns a Result, a
  // value or nothing. Returns the result of its last run.
  template <typename F>
  [[nodiscard]] AsResult<std::invoke_result_t<const F&, Writer&>> write_and_wait(
      const F& work, Patience patience = Patience::none) {
    std::optional<AsResult<std::invoke_result_t<const F&, Writer&>>> last;
    auto written = write_and_wait_for(
        [&](Writer& writer) -> model::Result<void> {
          last.emplace(returned(work, writer));
          if (!*last) return model::fail(last->error());
          return {};
        },
        patience);
    if (!written) return model::fail(written.error());
    return *std::move(last);
  }

  // Runs `work` between two transactions and waits for it, such as a checkpoint of SQLite. All
  // commits wait meanwhile. Otherwise as `write_and_wait`.
  [[nodiscard]] model::Result<void> run_alone(Work work);

  // Writes an empty transaction, unless a probe is waiting. Callers whose reads fail use it to
  // update `healthy()` if no other write is there to do so.
  void probe();

  // Writes the mark of a service that is done with a row. No SessionCommit of the same transaction
  // depends on it. Blocks as `submit`. `marked` is called on the Committer's thread once the mark
  // is durable. It is not called if the database refuses the mark or the Committer stops before.
  // `delivery` is written as well. Its event has an id of this program.
  void mark(std::function<void(Connection&)> write, std::function<void()> marked = {},
            std::optional<PlainDelivery> delivery = {});
  // Ends the wait of marks. For a service that can't go on without one. Does not block.
  void hurry();

  // False from the first failed try of a transaction until a transaction works again.
  [[nodiscard]] bool healthy() const { return healthy_.load(std::memory_order_relaxed); }

  // Called on the Committer's thread when `healthy()` changes.
  void on_health(std::function<void(bool)> listener);
  // The reason of the last failure; empty: there was none.
  [[nodiscard]] std::string last_failure() const {
    return last_failure_.with([](const std::string& failure) { return failure; });
  }

  // Transactions and commits committed since the start; for metrics.
  [[nodiscard]] std::uint64_t transactions() const { return transactions_.load(); }
  [[nodiscard]] std::uint64_t commits() const { return commits_.load(); }

 private:
  [[nodiscard]] model::Result<void> write_and_wait_for(Work work, Patience patience);

  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::atomic<bool> healthy_{true};
  model::Guarded<std::string> last_failure_;
  std::atomic<bool> probing_{false};
  std::atomic<std::uint64_t> transactions_{0};
  std::atomic<std::uint64_t> commits_{0};
};

// Counts of many rows end here, so that each takes a bounded time.
inline constexpr std::int64_t most_counted = 100'000;

// The base of classes that keep rows: they read through the database's connections and write
// through the Committer. Both must outlive it.
class Rows {
 public:
  Rows(Database& database, Committer& committer) : database_(database), committer_(committer) {}

 protected:
  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store
