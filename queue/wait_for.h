#pragma once

#include <future>

#include "queue/log.h"
#include "store/runtime/heartbeat.h"

namespace conversed::queue {

// Waits for the future's value. The Listener is told meanwhile, so that a slow disk or broker does
// not look like a loop that stands still.
template <typename T>
[[nodiscard]] T wait_for(std::future<T> outcome, Listener& listener) {
  while (outcome.wait_for(model::beat_interval) != std::future_status::ready) {
    listener.on_waiting();
  }
  return outcome.get();
}

}  // namespace conversed::queue
