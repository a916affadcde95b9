#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/conversation/endpoint_health.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/result.h"

namespace conversed::daemon {

// Knows the Endpoints whose webhooks fail, and pauses an Endpoint that has failed for long: it then
// gets one try a minute, until a try succeeds or an operator resumes it. The time of a pause does
// not count as an output's time of retries. Each change is written with the mark that the try
// writes anyway. Other daemons write the same rows, so they are read again. All times are by the
// clock of timers. One thread.
class WebhookHealth {
 public:
  static constexpr std::chrono::milliseconds probe_interval{60'000};

  // `pause_after` 0: no Endpoint is paused. `rows` must outlive it.
  WebhookHealth(store::EndpointHealth& rows, std::chrono::milliseconds pause_after,
                std::chrono::milliseconds retry_for)
      : rows_(rows), pause_after_(pause_after), retry_for_(retry_for) {}

  // Reads the rows again. Errors: those of the store.
  [[nodiscard]] model::Result<void> read();
  // Forgets the Endpoints without pending outputs, and old pauses. Returns these Endpoints. Errors:
  // those of the store.
  [[nodiscard]] model::Result<std::vector<std::string>> forget(model::Timestamp now);

  // When the next try may begin; none: the Endpoint is not paused.
  [[nodiscard]] std::optional<model::Timestamp> next_probe(const std::string& endpoint_id) const;

  // A try that failed. `began`: the Endpoint is paused from now on.
  struct Failed {
    bool paused = false;
    bool began = false;
    model::Timestamp failing_since{};
  };
  Failed failed(const std::string& endpoint_id, int status, std::string error,
                model::Timestamp now);
  // A try that succeeded. True: this ended a pause.
  bool works(const std::string& endpoint_id, model::Timestamp now);
  // An operator has ended the pause.
  void resumed(const std::string& endpoint_id, model::Timestamp now);

  // When an output of the Endpoint, created at `created`, is too old for another try.
  [[nodiscard]] model::Timestamp too_old_at(const std::string& endpoint_id,
                                            model::Timestamp created, model::Timestamp now) const;
  // How many of the Endpoint's outputs, from the first on, are too old for another try.
  template <typename Outputs>
  [[nodiscard]] std::size_t too_old_of(const std::string& endpoint_id, const Outputs& outputs,
                                       model::Timestamp now) const {
    const auto young = std::ranges::find_if(outputs, [&](const model::Output& output) {
      return too_old_at(endpoint_id, output.created_at, now) > now;
    });
    return static_cast<std::size_t>(young - outputs.begin());
  }

 private:
  store::EndpointHealth& rows_;
  const std::chrono::milliseconds pause_after_;
  const std::chrono::milliseconds retry_for_;
  std::map<std::string, store::EndpointFailure> failures_;
};

}  // namespace conversed::daemon
