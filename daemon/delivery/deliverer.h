#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "daemon/outbound/http_client.h"
#include "daemon/service/backoff.h"
#include "daemon/service/service.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/event.h"
#include "store/runtime/heartbeat.h"

namespace conversed::store {
class Store;
}

namespace conversed::daemon {

class Metrics;
class Ownership;
class TimerClock;

struct DelivererSettings {
  std::chrono::milliseconds timeout{10'000};           // of one POST
  std::chrono::milliseconds retry_for{24 * 3600'000};  // from an output's creation
  std::size_t connections = 32;                        // POSTs at once
  // How long a secret that was replaced signs beside the new one.
  std::chrono::milliseconds secret_overlap{24 * 3600'000};
  BackoffSettings backoff{};
  std::chrono::milliseconds drain_timeout{5'000};  // how long `stop` waits for those in flight
  // Where other daemons may be at it, what they left is found within this time.
  std::chrono::milliseconds look_interval{3'000};
  // Where its thread has a heartbeat; must outlive it. Null: nobody watches.
  model::Heartbeats* heartbeats = nullptr;
};

// Sends pending outputs to their Endpoints' webhooks: of one session in order and one at a time, of
// many sessions side by side, with the connections shared as DeliveryQueue says. At least once,
// with a constant `webhook-id`: a crash between the POST and its mark repeats it.
//
// Delivered is what was answered with 2xx. Everything else is tried again with backoff (a receiver
// that is wrong today may be right tomorrow; redirects are not followed) until `retry_for` has
// passed since the output's creation; 410 Gone ends it at once. An output that is given up becomes
// a dead letter with its reason, and the session's next one follows. If the Endpoint or its webhook
// is gone, its outputs are dropped. A retry waits with the whole of its session, and an Endpoint
// that fails waits as long itself: one try tells whether it works again, and what is too old then
// is given up without one of its own.
//
// Retries and ages go by the clock of timers: they do not mind that the wall clock is set.
//
// Rows drive, memory only excludes: with a free connection the Deliverer reads the next due rows of
// the Endpoint whose turn it is. What is in hand is in memory until the commit of its marks is
// known. Commits only wake it; what it was not told of it finds in the store within a few seconds.
// While the store fails, nothing is sent, since nothing could be marked.
//
// Of many daemons each sends what is its own (Ownership).
//
// `offer`, `offer_earlier`, `ownership_changed`, `wake`, `idle` are thread-safe and never block;
// they do nothing once stopped. One thread of its own does all the work; it alone reads the store.
class Deliverer final : public Service {
 public:
  // `http` is this Deliverer's own client, started before and stopped after it, with at least
  // `connections` in flight. All must outlive it.
  Deliverer(DelivererSettings settings, store::Store& store, HttpClient& http,
            const model::Clock& clock, TimerClock& timer_clock, Metrics& metrics,
            const Ownership& ownership);
  ~Deliverer() override;

  [[nodiscard]] model::Result<void> start() override;

  // No new POST; waits for those in flight up to `drain_timeout`. The store's Committer, which must
  // run until after it, then holds all marks. What was cut off is sent again after the next start.
  void stop() override;
  [[nodiscard]] std::string_view name() const override;

  // The session's newest outputs are pending: to be called once that is committed.
  void offer(const model::SessionKey& key);

  // The same of outputs that may come before some that are in hand.
  void offer_earlier(const model::SessionKey& key);

  // Looks for what is its own from now on. What is not any more ends with the POST in flight.
  void ownership_changed();

  // Looks at the clock again: it jumped.
  void wake();

  // Whether nothing is in flight or ready to be sent; what waits for a retry does not count. For
  // tests.
  [[nodiscard]] bool idle() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace conversed::daemon
