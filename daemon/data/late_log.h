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

// The log's ranges. Lays the store's shards out for them (store::Layout). `conflict` if the store
// belongs to another log; else the errors of the log and the store.
[[nodiscard]] model::Result<LogRanges> checked_ranges(queue::Log& log, store::Store& store);

// Whether the error may go away by itself: a log or store in the network may be away for a while.
[[nodiscard]] bool may_come_back(const model::Error& error);

// The pause between two looks. False if a stop was requested.
[[nodiscard]] bool wait_a_while(const std::stop_token& stopping);

// Calls `look` again and again, on its own thread, until it succeeds or its error is permanent.
// Then calls `done` with the outcome, on that thread. The jthread's destructor waits for both.
//
// Used if the log can't be reached at the start. The daemon listens meanwhile. Until the log has
// been compared with the store, every append is refused with 503 and `/readyz` says 503. A log that
// does not belong to the store ends the daemon. Kept by: test_kafka.py
// Kills.test_a_daemon_refuses_injects_until_its_broker_listens, DeletedTopic.
[[nodiscard]] std::jthread look_for_log(std::function<model::Result<LogRanges>()> look,
                                        std::function<void(model::Result<LogRanges>)> done);

}  // namespace conversed::daemon
