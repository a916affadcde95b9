#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "store/runtime/heartbeat.h"

namespace conversed::daemon {

// Lets batches run side by side, or one batch alone. A lone batch begins once all others have left,
// and no batch enters until it has left. Waiting lone batches go before batches that enter.
// Thread-safe.
//
// A batch that meets a counted event is discarded and built again here, and starts that one event.
// All other events run side by side, so the guilty event is known by its second crash.
// Kept by: LoneRuns.WhileOneRunsAloneNoneEnters, RecoveryTest.OnlyEventsThatWereInHandRunAlone.
class LoneRuns {
 public:
  // Waits while a batch runs alone or waits to. The caller is then in hand. `heartbeat` beats
  // during the wait; null: there is none.
  void enter(model::Heartbeat* heartbeat);

  // For a caller that is in hand: it leaves, and `run` is called on any thread once no batch is in
  // hand. The caller is in hand again from that call until `leave`. After `stop`, `run` is dropped
  // uncalled.
  void run_alone(std::function<void()> run) { end(std::move(run)); }

  // Ends the caller's hold.
  void leave() { end({}); }

  // Drops all waiting lone batches, and lets every other batch enter at once.
  void stop();

 private:
  // `then`: the lone batch that the caller leaves for; empty: none.
  void end(std::function<void()> then);
  // Called under the lock. Returns the lone batch to start, which the caller calls without the
  // lock.
  [[nodiscard]] std::function<void()> next();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t in_hand_ = 0;
  bool alone_ = false;  // the one in hand
  bool stopped_ = false;
  std::deque<std::function<void()>> waiting_;
};

}  // namespace conversed::daemon
