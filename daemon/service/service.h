#pragma once

#include "store/model/result.h"

namespace conversed::daemon {

// A part of the daemon that runs from `start` to `stop`. The App's thread owns, starts and stops
// it. The comment of each further member says which threads may call it.
class Service {
 public:
  Service() = default;
  virtual ~Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Called at most once. After an error the Service is as if it was never started, and `stop` does
  // nothing.
  [[nodiscard]] virtual model::Result<void> start() = 0;

  // Blocks until its threads have ended and its last callback has returned. Tolerates double stop
  // and stop without start. Every destructor calls it.
  virtual void stop() = 0;
};

}  // namespace conversed::daemon
