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
  std::uint64_t delivered = 0;  // outputs that webhooks accepted
  std::uint64_t in_flight = 0;  // unfinished records that were read from the log
  bool consuming = false;
  // The current step of the start, for people. Used until the log is consumed.
  std::string_view waits_for = "the log is not consumed yet";
  bool store_healthy = true;
  bool log_healthy = true;

  [[nodiscard]] bool ready() const { return consuming && store_healthy && log_healthy; }
};

// One line for people, with rates over the time between the two states.
[[nodiscard]] std::string describe(const Progress& before, const Progress& now,
                                   std::chrono::duration<double> between);

// Tells systemd, or another service manager with sd_notify's protocol, that a start goes on, that
// the daemon is ready, and how fast it works. Feeds the watchdog as long as every loop has beaten
// within half of the watchdog's time. Logs the loops that stand still.
//
// Every loop that a conversation passes has a heartbeat (store/runtime/heartbeat.h) and beats once
// a second: listeners, workers, the rerunner, the consumer, the Services and their HTTP clients.
// The threads that write the store and the log, jobs and housekeeping have none: they wait for a
// disk, and its failure shows as `unhealthy`. A failing store or log stops no loop: the watchdog is
// for defects. Kept by: SupervisorTest.ALoopThatStandsStillForHalfOfTheTimeStarvesTheWatchdog,
// test_service.py Watchdog.
//
// It runs from before the daemon's start, and asks for more time while a backup, a migration or a
// wait makes progress. Kept by: SupervisorTest.AStartThatMakesProgressAsksForMoreTimeAndIsNotReady.
//
// $NOTIFY_SOCKET names the manager's socket, and must not change meanwhile. Without a socket
// nothing is sent. A message that can't be sent is dropped: the daemon works without a manager.
//
// `consuming`, `reloading` and `reloaded` are thread-safe. One thread of its own looks.
class Supervisor final : public Service {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `heartbeats` must outlive it. `progress` is called on the Supervisor's thread and on threads
  // that call `consuming`; it must not block.
  Supervisor(model::Heartbeats& heartbeats, std::function<Progress()> progress);
  ~Supervisor() override { stop(); }

  [[nodiscard]] model::Result<void> start() override;
  void stop() override { thread_ = {}; }  // requests the thread's stop, and joins it

  // Tells that the daemon listens and consumes: the start has ended.
  void consuming();
  // Tell that a reload begins, and that it ended with `outcome`. Before `consuming` nothing is
  // sent: the manager would take the end of the reload for the end of the start.
  void reloading();
  void reloaded(const std::string& outcome);
  // Tells that the daemon begins to drain, for at most `limit`. No message follows.
  void stopping(std::chrono::milliseconds limit);

  [[nodiscard]] std::chrono::milliseconds interval() const;
  // One look. For the thread, and for tests without the thread.
  void look(Time now);

 private:
  enum class Phase : std::uint8_t { starting, ready, stopping };

  void say_progress(Time now);

  model::Heartbeats& heartbeats_;
  const std::function<Progress()> progress_;
  // The manager ends the daemon after this time without a message. Zero: it has no watchdog.
  const std::chrono::milliseconds watchdog_;
  const std::chrono::milliseconds stall_limit_;

  std::mutex mutex_;  // guards the following members, except the thread
  Phase phase_ = Phase::starting;
  Progress last_;
  Time last_at_;
  std::string said_;     // the last status
  std::string stalled_;  // names of the loops that stood still at the last look
  std::jthread thread_;
};

}  // namespace conversed::daemon
