#pragma once

#include <string_view>

#include "store/model/result.h"

namespace conversed::daemon {

// Something that runs beside the others from `start` to `stop`: owned, started and stopped by one
// thread, the App's. What else a Service offers says itself which threads may call it.
class Service {
 public:
  Service() = default;
  virtual ~Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // At most once. After an error the Service is as if never started, and `stop` does nothing.
  [[nodiscard]] virtual model::Result<void> start() = 0;

  // Blocks until its threads have ended and its last callback has returned. Tolerates double stop
  // and stop without start. Every destructor calls its own `stop`.
  virtual void stop() = 0;

  // For logs: lower case, constant.
  [[nodiscard]] virtual std::string_view name() const = 0;
};

}  // namespace conversed::daemon
