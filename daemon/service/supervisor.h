#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "daemon/service/service.h"
#include "store/runtime/heartbeat.h"

namespace conversed::daemon {

// The daemon's state at one instant. The counts are totals since the start.
struct Progress {
  std::uint64_t appended = 0;   // events that became durable
  std::uint64_t turns = 0;      // committed
  std::uint64_t delivered = 0;  // outputs that webhooks took
  std::uint64_t in_flight = 0;  // records that were taken from the log and are not finished
  bool consuming = false;
  // The current step of the start while it does not consume, for people.
  std::string_view waits_for = "the log is not consumed yet";
  bool store_healthy = true;
  bool log_healthy = true;

  [[nodiscard]] bool ready() const { return consuming && store_healthy && log_healthy; }
};

// One line for people, with rates over the time between the two.
[[nodiscard]] std::string describe(const Progress& before, const Progress& now,
                                   std::chrono::duration<double> between);

// Tells systemd, or another service manager with sd_notify's protocol, that a start goes on, that
// the daemon is ready, and how fast it works. Feeds the watchdog while every loop has beaten within
// half of the watchdog's time, and logs the loops that stand still.
//
// Every loop on a conversation's way has a heartbeat (store/runtime/heartbeat.h) and comes round
// once a second: listeners, workers, the rerunner, the consumer, the Services and their HTTP
// clients. The threads that write the store and the log, jobs and housekeeping have none, since
// they wait for a disk, which shows as `unhealthy`. A store or log that fails stops no loop: the
// watchdog is for defects. Kept by:
// SupervisorTest.ALoopThatStandsStillForHalfOfTheTimeStarvesTheWatchdog, test_service.py Watchdog.
//
// It runs before the start, and asks for more time while a backup, a migration or a wait makes
// progress. Kept by: SupervisorTest.AStartThatMakesProgressAsksForMoreTimeAndIsNotReady.
//
// $NOTIFY_SOCKET names the manager's socket, and must not change meanwhile. Without one nothing is
// sent. A message that can't be sent is dropped: the daemon works without its manager.
//
// `consuming`, `reloading` and `reloaded` are thread-safe. One thread of its own looks.
class Supervisor final : public Service {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `heartbeats` must outlive it. `progress` is called on the Supervisor's thread and those that
  // call `consuming`; it must not block.
  Supervisor(model::Heartbeats& heartbeats, std::function<Progress()> progress);
  ~Supervisor() override { stop(); }

  [[nodiscard]] model::Result<void> start() override;
  void stop() override { thread_ = {}; }  // asks it to stop, and joins

  // The daemon listens and consumes: the start is over.
  void consuming();
  // A reload begins, and ends with `outcome`. Nothing is sent before `ready`: the manager would
  // take the end of the reload for the end of the start.
  void reloading();
  void reloaded(const std::string& outcome);
  // The daemon begins to drain, which takes `limit` at most. Nothing is said after it.
  void stopping(std::chrono::milliseconds limit);

  [[nodiscard]] std::chrono::milliseconds interval() const;
  // One look. For the thread and for tests, which do without the thread.
  void look(Time now);

 private:
  enum class Phase : std::uint8_t { starting, ready, stopping };

  void say_progress(Time now);

  model::Heartbeats& heartbeats_;
  const std::function<Progress()> progress_;
  // The manager ends the daemon after this long without a message. Zero: it does not.
  const std::chrono::milliseconds watchdog_;
  const std::chrono::milliseconds stall_limit_;

  std::mutex mutex_;  // guards what follows, but for the thread
  Phase phase_ = Phase::starting;
  Progress last_;
  Time last_at_;
  std::string said_;     // the last status
  std::string stalled_;  // names of the loops that stood still at the last look
  std::jthread thread_;
};

}  // namespace conversed::daemon
