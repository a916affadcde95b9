#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "daemon/data/late_log.h"
#include "daemon/service/service.h"
#include "queue/lanes.h"
#include "queue/log.h"
#include "queue/pump.h"

namespace conversed::daemon {

// Reads the separate log of jobs' wake-ups (Kafka), so that no job waits behind a backlog of
// events. A failure of this log delays jobs until the rescuer finds their rows, and does not make
// the daemon unready.
class JobQueue final : public Service {
 public:
  // Calls `woken` with the id of each job to look at, on a thread of the queue; it must not block.
  // Empty: this daemon only writes to the log.
  JobQueue(std::unique_ptr<queue::Log> log, std::function<void(const std::string&)> woken);
  ~JobQueue() override;

  // Does not wait for the broker.
  [[nodiscard]] model::Result<void> start() override;
  // From then on appends are refused.
  void stop() override;

  // Thread-safe.
  [[nodiscard]] queue::Log& log() { return *log_; }

 private:
  void read(const model::Result<LogRanges>& found);

  const std::unique_ptr<queue::Log> log_;
  const std::function<void(const std::string&)> woken_;
  std::unique_ptr<queue::Lanes> lanes_;
  std::unique_ptr<queue::Pump> pump_;  // of the thread below until that has ended
  std::jthread late_log_;
};

}  // namespace conversed::daemon
