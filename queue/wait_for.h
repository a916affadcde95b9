#pragma once

#include <future>

#include "queue/log.h"
#include "store/runtime/heartbeat.h"

namespace conversed::queue {

// What the future brings. The Listener is told as long as that takes: a disk or a broker that is
// slow is no loop that stands still.
template <typename T>
[[nodiscard]] T wait_for(std::future<T> outcome, Listener& listener) {
  while (outcome.wait_for(model::beat_interval) != std::future_status::ready) {
    listener.on_waiting();
  }
  return outcome.get();
}

}  // namespace conversed::queue
