#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "queue/keyed_append.h"
#include "queue/log.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::api {

// Appends Events to the log, as records under their session's key. Thread-safe. Callbacks are
// called exactly once, on a thread of the log, when the event is durable or has failed. queue::Log
// says what each error promises.
class Events {
 public:
  using Appended = std::function<void(model::Result<queue::Appended>)>;
  using KeyedAppended = std::function<void(model::Result<queue::KeyedAppended>)>;
  using LookedUp = queue::LookUpCallback;

  // Both must outlive this.
  Events(queue::Log& log, queue::KeyedAppend& keyed) : log_(log), keyed_(keyed) {}

  void append(model::Event event, Appended done);

  // Appends once per key: a repeated one comes back with the first one's id and is not appended.
  // The event has to carry the claim {keyed_event, its id}, so that a second record of it, which a
  // log may hold after a broken append, has no effects.
  void append_keyed(model::Event event, const queue::AppendKey& key, KeyedAppended done);

  // The event that a key stands for, without an append. `done` may be called inside this call.
  void look_up(const queue::AppendKey& key, LookedUp done);

  // Until `release`, every append and look-up is refused (`unavailable`): it is not known yet
  // whether the log is the one that the store has seen.
  void hold() { held_.store(true); }
  void release() { held_.store(false); }

  // Events that became durable since the start.
  [[nodiscard]] std::uint64_t appended() const { return appended_.load(std::memory_order_relaxed); }

 private:
  queue::Log& log_;
  queue::KeyedAppend& keyed_;
  std::atomic<bool> held_{false};
  std::atomic<std::uint64_t> appended_{0};
};

}  // namespace conversed::api
