#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

#include "store/runtime/heartbeat.h"

namespace conversed::daemon {

// Lets batches run side by side, and one that asks for it alone: it begins once all others have
// left, and until it has left none enters. Those that ask for it go before those that enter.
// Thread-safe.
//
// A batch that meets a counted event is discarded and built again here, and starts that one event.
// All other events run side by side, so the guilty event is known by its second crash.
// Kept by: LoneRuns.WhileOneRunsAloneNoneEnters, RecoveryTest.OnlyEventsThatWereInHandRunAlone.
class LoneRuns {
 public:
  // Waits while a batch runs alone, or is to; the caller is in hand from then on. `heartbeat` beats
  // meanwhile; null: nobody watches.
  void enter(model::Heartbeat* heartbeat);

  // The caller, which is in hand, leaves and has `run` called, on whichever thread, once nothing
  // is in hand. It is in hand again from that call on, until `leave`. Dropped uncalled after
  // `stop`.
  void run_alone(std::function<void()> run);

  // The caller, which is in hand, has come to its end.
  void leave();

  // From now on nothing waits: what is to run alone is dropped, and all enter at once.
  void stop();

 private:
  // Under the lock: what is to be called without it, if it is time for that.
  [[nodiscard]] std::function<void()> next();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t in_hand_ = 0;
  bool alone_ = false;  // the one in hand
  bool stopped_ = false;
  std::deque<std::function<void()>> waiting_;
};

}  // namespace conversed::daemon
