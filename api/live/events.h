#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "queue/keyed_append.h"
#include "queue/log.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::api {

// Appends Events to the log, as records under their session's key. Thread-safe. Each callback runs
// exactly once, on a thread of the log, when the event is durable or has failed. queue::Log defines
// the promise of each error.
class Events {
 public:
  using Appended = std::function<void(model::Result<queue::Appended>)>;
  using KeyedAppended = std::function<void(model::Result<queue::KeyedAppended>)>;
  using LookedUp = queue::LookUpCallback;

  // Log and keys must outlive this. `daemon`: this daemon's name, for the receipts of events.
  Events(queue::Log& log, queue::KeyedAppend& keyed, std::string daemon = {})
      : log_(log), keyed_(keyed), daemon_(std::move(daemon)) {}

  void append(model::Event event, Appended done);

  // Appends once for each key. A repeat returns the first event's id and appends nothing. The event
  // has to carry the claim {keyed_event, its id}: after a broken append the log may hold a second
  // record, and the claim makes it have no effects.
  void append_keyed(model::Event event, const queue::AppendKey& key, KeyedAppended done);

  // Finds the event that a key stands for, without an append. May call `done` before it returns.
  void look_up(const queue::AppendKey& key, LookedUp done);

  // Refuses every append and look-up (`unavailable`) until `release`. Used while it is unknown
  // whether this log is the one that belongs to the store.
  void hold() { held_.store(true); }
  void release() { held_.store(false); }

  // The number of events that became durable since the start.
  [[nodiscard]] std::uint64_t appended() const { return appended_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] queue::Record to_record(model::Event&& event) const;

  queue::Log& log_;
  queue::KeyedAppend& keyed_;
  const std::string daemon_;
  std::atomic<bool> held_{false};
  std::atomic<std::uint64_t> appended_{0};
};

}  // namespace conversed::api
