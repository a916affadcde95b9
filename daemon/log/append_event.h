#pragma once

#include <functional>

#include "queue/log.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::daemon {

// Appends an Event to the log; api::Events::append fits. Calls back exactly once, maybe inside the
// call. The errors are queue::Log's. Thread-safe.
using AppendEvent =
    std::function<void(model::Event, std::function<void(model::Result<queue::Appended>)>)>;

}  // namespace conversed::daemon
