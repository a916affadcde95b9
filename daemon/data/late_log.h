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

// What the log holds. `conflict` if it is not the log that the store has seen; else the errors of
// the log and the store.
[[nodiscard]] model::Result<LogRanges> checked_ranges(queue::Log& log, store::Store& store);

// Whether the error may go away by itself: a log or store in the network may be away for a while.
[[nodiscard]] bool may_come_back(const model::Error& error);

// Between two looks. False if it is to stop.
[[nodiscard]] bool wait_a_while(const std::stop_token& stopping);

// Calls `look` again and again, on a thread of its own, until it succeeds or its error is
// permanent. Then calls `done` with the outcome, on that thread. The end of the jthread waits for
// both.
//
// For a log that is away at the start, while the daemon listens. Until the log has been compared
// with the store, every append is refused with 503 and `/readyz` says 503. A log that the store has
// not seen ends the daemon. Kept by: test_kafka.py
// Kills.test_a_daemon_that_starts_before_its_broker_listens_refuses_and_goes_on, DeletedTopic.
[[nodiscard]] std::jthread look_for_log(std::function<model::Result<LogRanges>()> look,
                                        std::function<void(model::Result<LogRanges>)> done);

}  // namespace conversed::daemon
