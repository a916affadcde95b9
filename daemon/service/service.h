#pragma once

#include "store/model/result.h"

namespace conversed::daemon {

// A part that runs from `start` to `stop`. The App's thread owns, starts and stops it. Each further
// member says which threads may call it.
class Service {
 public:
  Service() = default;
  virtual ~Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // At most once. After an error the Service is as if never started, and `stop` does nothing.
  [[nodiscard]] virtual model::Result<void> start() = 0;

  // Blocks until its threads have ended and its last callback has returned. Tolerates double stop
  // and stop without start. Every destructor stops.
  virtual void stop() = 0;
};

}  // namespace conversed::daemon
