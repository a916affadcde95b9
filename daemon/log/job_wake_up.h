#pragma once

#include <functional>
#include <optional>
#include <string>

#include "queue/log.h"
#include "store/model/clock.h"

namespace conversed::daemon {

// A wake-up is an event in a log that wakes one worker of jobs, in any daemon. It belongs to no
// conversation, and its key can't be a session's. Reading it twice, or never, does no harm: the
// job's row is the truth. Kafka has a topic for it (daemon/jobs/job_queue.h).

// Appends the event. Calls `failed` if the append failed or its outcome is unknown.
void append_wake_up(queue::Log& log, const std::string& job_id, model::Timestamp now,
                    std::function<void(const model::Error&)> failed);

// The id of the job that the record wakes; nothing for other records.
[[nodiscard]] std::optional<std::string> woken_job(const queue::Record& record);

}  // namespace conversed::daemon
