#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "daemon/turns/flight_recorder.h"
#include "daemon/turns/lone_runs.h"
#include "daemon/turns/retry_queue.h"
#include "daemon/turns/turn_batch.h"
#include "queue/lanes.h"
#include "store/commit/committer.h"
#include "store/model/effects.h"
#include "store/runtime/heartbeat.h"

namespace conversed::api {
class BusySessions;
class KeyWatch;
}  // namespace conversed::api
namespace conversed::daemon {

class Metrics;

// Where the effects of a committed batch go. Called on the Committer's thread. After a batch
// without changes, and for `fatal`, the caller is a worker or the rerunner. None may block.
struct TurnPorts {
  // The SessionCommit has pending outputs. `older_are_known`: this was called for all older outputs
  // of the session, too.
  std::function<void(const store::SessionCommit&, bool older_are_known)> deliver;
  // A call of this session to this target is pending.
  std::function<void(const model::SessionKey&, const std::string& target)> call;
  // When a timer or follow-up of this session falls due.
  std::function<void(const model::SessionKey&, model::Timestamp)> timer;
  std::function<void(const model::Schedule&)> schedule;  // the store has its next time
  std::function<void()> ramp_failed;                     // a Turn of a version in a ramp has failed
  std::function<void(const std::string& organisation_id, std::int64_t injects)>
      counted;                                     // in the quota
  std::function<void(const model::Error&)> fatal;  // consumption has to stop because of this error
};

// Handles the runs of the Lanes: builds a batch, submits it for its commit, and only then releases
// its effects and the lane. A run that must be tried again (a conflict, a store that can't be read,
// effects that the database refuses) moves to another thread, the rerunner, so that neither the
// workers nor the Committer wait. So does a batch with an event that was in hand in a crash: it
// runs with no other batch in hand. Thread-safe.
//
// Invariants:
// - Effects follow their commit: answers, deliveries, calls and the lane's next run wait for the
//   Committer's callback. Kept by: tests/fault/kill_campaign.py.
// - Each Task finishes or abandons its lane's run. A destroyed Task abandons it: the records stay
//   unfinished in the log and are read again after the next start.
//   Kept by: LanesDeathTest.AFinishThatIsLostAborts, PumpTest.UnfinishedRecordsComeAgain.
// - A store failure never counts as an attempt. Consumption pauses and resumes when the store works
//   again. Kept by: test_failures.py FailingStore.
// - The rerunner takes the runs of organisations in turn (retry_queue.h). After its second conflict
//   a run pauses before each further try, because the sessions of a user that write the profile
//   conflict with each other.
//   Kept by: TurnWorkerTest.ManyConflictsOfOneOrganisationDelayAnotherOneByARun,
//   ConflictPauses.DoubleFromTheSecondConflictOn.
// - A run whose data can't be read delays no other batch, even one that has to run alone. It pauses
//   before each further try, up to 5 s.
//   Kept by: TurnWorkerTest.AnUnreadableRowDelaysNoEventThatRunsAlone.
// - A stop does not wait for a failing store. Once the batches in hand had their time, the
//   Committer gives up failing commits. Their records are read again after the next start.
//   Kept by: test_failures.py FailingStore.test_a_stop_does_not_wait_for_a_turns_commit.
class TurnWorker {
 public:
  // All arguments must outlive it; it copies `context` and `ports`. `recorder` notes the events in
  // hand; null: none is noted. `heartbeats`: of the rerunner; null: none.
  TurnWorker(TurnBatchContext context, api::KeyWatch& watch, api::BusySessions& busy,
             Metrics& metrics, TurnPorts ports, FlightRecorder* recorder = nullptr,
             model::Heartbeats* heartbeats = nullptr);
  ~TurnWorker();
  TurnWorker(const TurnWorker&) = delete;
  TurnWorker& operator=(const TurnWorker&) = delete;

  // The Lanes' handler. Waits while another batch runs alone.
  void handle(queue::Run run, queue::Finish finish);

  // Gives up the runs that wait for another try. Their records stay unfinished and are read again
  // after the next start. Tolerates a second call.
  void stop();

 private:
  struct Task;
  using TaskPtr = std::shared_ptr<Task>;

  // `heartbeat` belongs to the calling thread.
  void attempt(const TaskPtr& task, model::Heartbeat* heartbeat);
  void read_ahead(std::span<const std::string_view> lane_keys) const;
  [[nodiscard]] TurnBatchInput input_of(Task& task, model::Heartbeat* heartbeat) const;
  void not_built(const TaskPtr& task, const model::Error& error);
  void retry(const TaskPtr& task, model::Heartbeat* heartbeat);
  void run_alone(const TaskPtr& task);
  void after_commit(const TaskPtr& task, store::Outcome outcome,
                    const store::SessionCommit& commit);
  void let_out(Task& task, const store::SessionCommit& commit);
  void report(const AfterCommit& after, const store::SessionCommit& commit);
  void count(const AfterCommit& after, const store::SessionCommit& commit);
  void go_on(const TaskPtr& task);
  void again_later(const TaskPtr& task, std::chrono::milliseconds delay);
  void run_again(const std::stop_token& stop, model::Heartbeat heartbeat);

  const TurnBatchContext context_;
  api::KeyWatch& watch_;
  api::BusySessions& busy_;
  const TurnPorts ports_;
  FlightRecorder* const recorder_;
  Metrics& metrics_;
  LoneRuns in_hand_;

  std::mutex mutex_;
  std::condition_variable_any wake_;
  RetryQueue<TaskPtr> waiting_;
  bool stopped_ = false;
  std::jthread rerunner_;  // the last member: it uses all others
};

// The pause of a run that has lost this many conflicts. The first one causes none.
[[nodiscard]] std::chrono::milliseconds pause_after_conflicts(int conflicts);

// The organisation of the session. Until a Turn has looked up the Endpoint, it is the project.
// Reads nothing from the store. Kept by: Shares.OneShareNeverHasAllWorkers.
[[nodiscard]] std::string share_of(const api::AssetsCache& assets, const model::SessionKey& key);

}  // namespace conversed::daemon
