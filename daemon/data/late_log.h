#pragma once

#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include "queue/log.h"
#include "store/model/result.h"
#include "store/store.h"

namespace conversed::daemon {

using LogRanges = std::vector<queue::PartitionRange>;

// What the log holds, provided that it is the one that the store has seen; else `conflict`, and
// whatever either of them fails with.
[[nodiscard]] model::Result<LogRanges> checked_ranges(queue::Log& log, store::Store& store);

// Whether it may be over by itself: a log or store in the network may be away for a while.
[[nodiscard]] bool may_come_back(const model::Error& error);

// Between two looks. False if it is to stop.
[[nodiscard]] bool wait_a_while(const std::stop_token& stopping);

// Waits for a log that is not there at the start. One thread at a time.
class LateLog {
 public:
  LateLog() = default;
  ~LateLog();  // stops
  LateLog(const LateLog&) = delete;
  LateLog& operator=(const LateLog&) = delete;

  // Looks again and again, on a thread of its own, until there is what `look` asks for, or an error
  // that stays; `done` has it then, on that thread. At most once.
  void start(std::function<model::Result<LogRanges>()> look,
             std::function<void(model::Result<LogRanges>)> done);
  // Blocks until neither of the two runs; may be called again.
  void stop();

 private:
  std::jthread thread_;
};

}  // namespace conversed::daemon
