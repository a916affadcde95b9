#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "api/live/blocking_pool.h"
#include "daemon/calls/call_queue.h"
#include "daemon/cluster/ownership.h"
#include "daemon/code/code_pool.h"
#include "daemon/log/append_event.h"
#include "daemon/ops/metrics.h"
#include "daemon/outbound/http_client.h"
#include "daemon/service/backoff.h"
#include "daemon/service/question.h"
#include "daemon/service/service.h"
#include "daemon/service/service_thread.h"
#include "daemon/telemetry/spans.h"
#include "store/model/clock.h"
#include "store/runtime/heartbeat.h"
#include "store/store.h"

namespace conversed::daemon {

struct CallerSettings {
  std::size_t max_response_bytes = 256 * 1024;
  CallQueueLimits limits{};
  std::chrono::milliseconds search_timeout{5'000};
  int max_search_tries = 10;  // of one search in knowledge
  int max_script_tries = 10;  // of one script whose sandbox fails
  // Tokens of language models for an organisation in a calendar month (UTC); 0: no limit.
  std::uint64_t model_tokens_per_month = 0;
  BackoffSettings backoff{.first = std::chrono::milliseconds(250),
                          .max = std::chrono::milliseconds(5'000),
                          .max_asked = std::chrono::milliseconds(30'000)};
  // A call without a notification, such as one that another daemon left, is found within this time.
  // Earlier after a change of owners (OwnersLook).
  std::chrono::milliseconds look_interval{10'000};
  // The clock of retries (timer_clock.h); must outlive it. Null: the Caller's clock.
  const model::Clock* timer_clock = nullptr;
  CodePool* code = nullptr;  // must outlive it. Null: scripts are switched off
  bool keeps_receipts = true;
  Spans* spans = nullptr;                   // must outlive it. Null: no spans are made
  model::Heartbeats* heartbeats = nullptr;  // of its thread; must outlive it. Null: none
};

// Makes the calls that executions wait for: HTTP requests, searches in knowledge and scripts.
// Appends each result as a `call_result` Event: id "<call id>-r", claim {pending_call, call id}.
//
// A call has up to 1 + retries attempts (`worth_retrying`), all with the same `Idempotency-Key`. A
// call without a result in the log is made again after a restart, so an upstream sees a call at
// least once. A result that can't be appended is tried again until the Caller stops; until then no
// call begins.
//
// With a free slot the Caller reads the next due calls of the lane whose turn it is (CallQueue).
// Commits wake it, and a regular look finds other calls. While the store fails no call
// begins. In a cluster each daemon makes the calls of its own sessions (Ownership).
//
// The result has the last answer's status and body; a status of 400 and above is `error_code`
// "status". Other codes: "timeout", "refused" (also for an invalid request), "egress_refused",
// "too_large" (also for the log), "knowledge_damaged", "search_failed". No request is made for
// "connection_deleted" (the Connection is gone, unreadable, or of an unfit type), "host_refused"
// (the Connection does not name the host), "knowledge_deleted" and "quota_exhausted" (no tokens of
// language models left). A script has the codes of CodeOutcome, or "code_off".
//
// Invariants:
// - A crash between an append and its mark appends the result twice. Its claim lets one of them
//   have effects. Kept by: TurnBatchTest.AResultThatCameTwiceIsTakenOnce.
// - A row that can't be read delays no other: it is marked as `appended`.
//   Kept by: CallerTest.CallThatCantBeReadHoldsNoOtherUp.
// - A search in knowledge is a durable, claimed call, as a request is.
//   Kept by: CallerTest.UnfinishedSearchesAreMadeAtTheStart.
// - So is a script, which has no effect of its own: another run does no harm.
//   Kept by: ScriptTest.IsRunAgainAtTheStart.
// - The fields of a Connection are in memory during a request only. The values of a request's
//   headers are wiped after the request.
//   Kept by: CallerTest.EachFailureHasItsCodeAndNoSecretInItsMessage.
// - A result whose session is gone leaves no row, so that an erased user stays erased.
//   Kept by: CallerTest.ResultOfAnErasedSessionIsNotAppended.
//
// `offer`, `ownership_changed`, `wake` and `idle` are thread-safe and never block; they do nothing
// once stopped. One thread does all the work except searches, which have a thread and a time limit
// of their own, so that a large knowledge store delays no request, and scripts (CodePool).
class Caller final : public Service {
 public:
  // Makes the calls of the shard. `http` is started before and stopped after it. All must outlive
  // it.
  Caller(CallerSettings settings, store::Store& store, store::Shard& shard, HttpClient& http,
         AppendEvent append, const model::Clock& clock, Metrics& metrics,
         const Ownership& ownership);
  ~Caller() override { stop(); }

  [[nodiscard]] model::Result<void> start() override {
    return thread_.start("caller", settings_.heartbeats, [this] { run(); });
  }

  // Begins no new attempt and does not wait for attempts in flight. Their calls are made again
  // after the next start.
  void stop() override;

  // Tells of a committed call of this project to this target (store/commit/call_target.h).
  void offer(std::string project_id, std::string target);

  // Looks for the calls of the sessions that it owns now. A call under way goes on, and its result
  // counts.
  void ownership_changed() {
    post(thread_.mailbox(), [this] {
      looks_.owners_changed(SteadyClock::now());
      look_again();
    });
  }

  // When the present attempt of the call began; none: it is not under way here. Waits for the
  // Caller's thread, for a second at most.
  [[nodiscard]] std::optional<model::Timestamp> calling_since(const std::string& id);

  // Looks at the clock again after it jumped.
  void wake() { thread_.mailbox()->wake(); }

  // Whether no call is in hand or ready to be made. Calls that wait for a retry do not count. For
  // tests.
  [[nodiscard]] bool idle() const { return thread_.mailbox()->quiet(); }

 private:
  using Call = CallQueue::Call;
  using SteadyClock = std::chrono::steady_clock;

  void run();
  [[nodiscard]] SteadyClock::time_point next_look() const;
  [[nodiscard]] model::Timestamp now() const { return timer_clock_.now(); }

  // Looking for calls.
  void wake(const std::string& project_id, const std::string& target, model::Timestamp due);
  [[nodiscard]] std::string organization_of(const std::string& project_id) const;
  void look();
  void look_again();
  void not_read(const model::Error& error);
  void send_ready();
  [[nodiscard]] bool begin_calls(CallQueue::Lane& lane);
  [[nodiscard]] bool begin(CallQueue::Lane& lane, const store::Calls::Due& due);

  // A call in hand.
  void send(Call& call);
  [[nodiscard]] model::Result<bool> quota_left(const std::string& project_id) const;
  void search(Call& call);
  void run_script(Call& call);
  // `error`: the error code of a search or a script. That of an HTTP call is in `outcome`.
  void trace(const Call& call, const HttpOutcome& outcome, std::string span_id,
             std::string error = {});
  void finish(Call& call, const HttpOutcome& outcome, const std::string& span_id);
  void finish(Call& call, const model::Result<std::vector<store::KnowledgeHit>>& hits,
              SteadyClock::duration took);
  void finish(Call& call, const CodeOutcome& outcome, SteadyClock::duration took);
  // A try that ended now, for the receipt. `outcome` null: it was a search or a script, or no
  // request was made.
  struct Try {
    const HttpOutcome* outcome = nullptr;
    SteadyClock::duration took{};
  };
  [[nodiscard]] std::optional<store::ReceiptMark> row_of(
      const Call& call, const Try& made, std::string_view error,
      std::optional<model::Timestamp> next = {}) const;
  void put_off(Call& call, const Try& made);
  void leave_for_a_while(Call& call);
  void settle(Call& call, model::CallResult result, const Try& made);
  void append(Call& call);
  void append_again();
  void appended(const std::string& id, const std::optional<model::Error>& error);
  void mark_appended(const std::string& id, std::optional<store::ReceiptMark> row);
  [[nodiscard]] std::function<void()> marked(const std::string& id,
                                             std::optional<model::Timestamp> due);

  const CallerSettings settings_;
  store::Store& store_;
  store::Shard& shard_;
  HttpClient& http_;
  const AppendEvent append_;
  const model::Clock& clock_;
  const model::Clock& timer_clock_;
  Metrics& metrics_;
  const Ownership& ownership_;

  // The thread's own.
  CallQueue queue_;
  std::vector<std::string> unappended_;  // calls whose result the log refused at the last try
  SteadyClock::time_point append_after_{};
  int appends_failed_ = 0;  // tries in a row
  std::vector<HttpClient::Exchange> batch_;
  std::mt19937_64 random_{std::random_device{}()};
  bool looking_ = true;  // whether to look for lanes with calls
  store::Calls::Lane looked_up_to_;
  std::string looked_up_organization_;  // of that lane
  bool clock_checked_ = false;  // whether the clock was compared with the retries of the last run
  OwnersLook looks_;
  SteadyClock::time_point next_look_{};
  SteadyClock::time_point read_after_{};  // after a read that failed
  bool read_on_ = false;                  // more was due than `turns_at_once`
  ServiceThread<Errands> thread_;         // it uses all others
  api::BlockingPool searches_;            // uses the store, and the thread's mailbox
};

}  // namespace conversed::daemon
