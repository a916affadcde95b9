#pragma once

#include <functional>
#include <optional>
#include <string>

#include "queue/log.h"
#include "store/model/clock.h"

namespace conversed::daemon {

// A job's row is the truth; an event in a log wakes one of those who run jobs, whichever daemon
// that is. It belongs to no conversation: its key can't be one's, and reading it twice, or not at
// all (the rescuer finds the row), harms nothing. Kafka has a topic for it
// (daemon/jobs/job_queue.h).

// Appends the event. `failed` is called if it certainly, or maybe, is not in the log.
void append_wake_up(queue::Log& log, const std::string& job_id, model::Timestamp now,
                    std::function<void(const model::Error&)> failed);

// The job that the record wakes; nothing: it is another record.
[[nodiscard]] std::optional<std::string> woken_job(const queue::Record& record);

}  // namespace conversed::daemon
