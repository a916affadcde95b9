#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "config/settings.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::daemon {

// The daemon: owns every part, wires them, starts them in the order in which they need each other
// and stops them in reverse. One thread, main's; it blocks SIGTERM in all threads before `start`.
class App {
 public:
  // `clock` must outlive it.
  App(config::Settings settings, const model::Clock& clock);
  ~App();  // stops
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  // Opens the data folder, recovers what the last run left, listens and consumes. Writes
  // `run/ports.json` once it listens, and logs `ready` once it consumes. On an error nothing runs.
  // At most once.
  [[nodiscard]] model::Result<void> start();

  // Takes over from new settings what can be changed while it runs, and logs which those are and
  // which need a restart. `read` gives them, or nothing if they are refused, with its own lines in
  // the log; then everything stays as it is. After `start`.
  void reload(const std::function<std::optional<config::Settings>()>& read);

  // Drains: takes no new requests, answers accepted ones, commits Turns in hand, sends what is on
  // its way; all of it within `shutdown_timeout`. What is left then is in log and store. Tolerates
  // double stop and stop without start.
  void stop();

  // Whether a defect ended the daemon: it has sent SIGTERM to itself, with a line in the log that
  // says why.
  [[nodiscard]] bool failed() const;

 private:
  struct Parts;
  config::Settings settings_;  // `reload` changes what can be
  const model::Clock& clock_;
  std::unique_ptr<Parts> parts_;
  bool failed_ = false;
};

}  // namespace conversed::daemon
