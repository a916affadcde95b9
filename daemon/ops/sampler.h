#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "api/live/history.h"
#include "daemon/ops/metrics.h"
#include "store/model/clock.h"

namespace conversed::daemon {

// Fills a History with the metrics, on a thread of its own. `start` and `stop` are for the App's
// thread.
class Sampler {
 public:
  // All must outlive it.
  Sampler(Metrics& metrics, const model::Clock& clock, api::History& history)
      : metrics_(metrics), clock_(clock), history_(history) {}
  ~Sampler() { stop(); }
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void start();
  // Begins no further sample. Does not wait for the one that is taken.
  void request_stop() { thread_.request_stop(); }
  void stop();  // tolerates being called twice, and without `start`

  // Takes one sample. `passed` is the time since the one before, 0 for the first. Not while the
  // thread runs.
  void sample(std::chrono::duration<double> passed);

 private:
  void run(const std::stop_token& stop);

  Metrics& metrics_;
  const model::Clock& clock_;
  api::History& history_;
  std::map<std::string, Reading> before_;  // the readings of the last sample, by metric
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace conversed::daemon
