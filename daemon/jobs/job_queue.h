#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/data/late_log.h"
#include "daemon/service/service.h"
#include "queue/lanes.h"
#include "queue/log.h"
#include "queue/pump.h"

namespace conversed::daemon {

// Reads the log that wakes those who run jobs, where that is one of its own: a job then waits
// behind no backlog of events. What can't be read keeps no job, as their rows are looked at, too:
// nobody is less ready for it.
class JobQueue final : public Service {
 public:
  // `woken` has the id of each job that is to be looked at, on a thread of the queue; it must not
  // block. Empty: other daemons read the log, and this one only writes to it.
  JobQueue(std::unique_ptr<queue::Log> log, std::function<void(const std::string&)> woken);
  ~JobQueue() override;

  // Waits for no broker.
  [[nodiscard]] model::Result<void> start() override;
  // Refuses what is appended from then on.
  void stop() override;
  [[nodiscard]] std::string_view name() const override;

  // Thread-safe.
  [[nodiscard]] queue::Log& log() { return *log_; }

 private:
  void read(const model::Result<LogRanges>& found);

  const std::unique_ptr<queue::Log> log_;
  const std::function<void(const std::string&)> woken_;
  std::unique_ptr<queue::Lanes> lanes_;
  std::unique_ptr<queue::Pump> pump_;  // of the thread below until that has ended
  LateLog late_log_;
};

}  // namespace conversed::daemon
