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
// and no batch enters until it has left. Waiting lone batches have priority over entering batches.
// Thread-safe.
//
// A batch with a counted event is discarded and built again as a lone batch, which starts only that
// event. All other events run side by side, so the second crash already identifies the guilty
// event. Kept by: LoneRuns.WhileOneRunsAloneNoneEnters,
// RecoveryTest.OnlyEventsThatWereInHandRunAlone.
class LoneRuns {
 public:
  // Waits while a batch runs alone or waits to run alone. Then the caller is in hand. `heartbeat`
  // beats during the wait; it may be null.
  void enter(model::Heartbeat* heartbeat);

  // As `enter`, without the wait. False: the caller would have to wait, and is not in hand.
  [[nodiscard]] bool try_enter();

  // For a caller in hand: it leaves, and `run` is called on any thread once no batch is in hand.
  // The caller is in hand again from that call until `leave`. After `stop`, `run` is destroyed
  // without a call.
  void run_alone(std::function<void()> run) { end(std::move(run)); }

  // Ends the caller's hold.
  void leave() { end({}); }

  // Drops all waiting lone batches, and lets every other batch enter at once.
  void stop();

 private:
  // `then`: the lone batch that the caller wants to run; empty: none.
  void end(std::function<void()> then);
  // Called under the lock. Returns the lone batch to start, which the caller calls without the
  // lock.
  [[nodiscard]] std::function<void()> next();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t in_hand_ = 0;
  bool alone_ = false;  // the batch in hand runs alone
  bool stopped_ = false;
  std::deque<std::function<void()>> waiting_;
};

}  // namespace conversed::daemon
