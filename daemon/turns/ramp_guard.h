#pragma once

#include "daemon/service/service.h"
#include "daemon/service/service_thread.h"
#include "store/runtime/heartbeat.h"

namespace conversed::store {
class Store;
}

namespace conversed::daemon {

// Takes back ramps whose version fails too often (store::Assets::take_back_ramps). It looks after
// each commit with a failed Turn of such a version, and by itself every 30 seconds: a commit may
// have been the last act of a daemon. One thread of its own does the work.
class RampGuard final : public Service {
 public:
  // `store` must outlive it. `heartbeats`: null if it is not watched.
  explicit RampGuard(store::Store& store, model::Heartbeats* heartbeats = nullptr)
      : store_(store), heartbeats_(heartbeats) {}
  ~RampGuard() override { stop(); }

  [[nodiscard]] model::Result<void> start() override;
  void stop() override { thread_.stop(); }

  // A Turn of a version in a ramp has failed. Thread-safe.
  void look() {
    thread_.mailbox()->put([](Letters& letters) { letters.look = true; });
  }

 private:
  struct Letters {
    bool stop = false;
    bool look = false;
  };
  void run();
  void take_back();

  store::Store& store_;
  model::Heartbeats* const heartbeats_;
  ServiceThread<Letters> thread_;  // last: it uses all others
};

}  // namespace conversed::daemon
