#include "daemon/turns/ramp_guard.h"

#include <chrono>

#include "daemon/ops/logging.h"
#include "store/store.h"

namespace conversed::daemon {
namespace {

constexpr std::chrono::seconds look_interval{30};

}  // namespace

model::Result<void> RampGuard::start() {
  return thread_.start("ramp guard", heartbeats_, [this] { run(); });
}

void RampGuard::run() {
  using Clock = std::chrono::steady_clock;
  auto next = Clock::now();
  for (;;) {
    if (Clock::now() >= next) {
      take_back();
      next = Clock::now() + look_interval;
    }
    const Letters letters = thread_.take(next);  // may return before, for the heartbeat
    if (letters.stop) return;
    if (letters.look) next = Clock::now();
  }
}

void RampGuard::take_back() {
  const auto ended = store_.assets().take_back_ramps();
  if (!ended) return;  // the store fails, which others report; the next look tries again
  for (const auto& ramp : *ended) {
    log::warn("a ramp was taken back: too many Turns of its version have failed",
              {{"flow", ramp.name},
               {"flowId", ramp.flow_id},
               {"version", ramp.version},
               {"stableVersion", ramp.stable_version},
               {"turns", ramp.ramped.turns},
               {"failures", ramp.ramped.failures},
               {"maxErrorsPercent", ramp.max_errors}});
  }
}

}  // namespace conversed::daemon
