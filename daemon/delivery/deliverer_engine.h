#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "daemon/cluster/ownership.h"
#include "daemon/delivery/deliverer.h"
#include "daemon/delivery/delivery_queue.h"
#include "daemon/delivery/webhook_targets.h"
#include "daemon/ops/metrics.h"
#include "daemon/service/service_thread.h"
#include "daemon/timers/timer_clock.h"
#include "store/store.h"

// For deliverer*.cc only: deliverer.cc chooses the sessions, deliverer_session.cc sends their
// outputs.
namespace conversed::daemon {

class Deliverer::Engine {
 public:
  using Lane = DeliveryQueue::Lane;
  using Session = DeliveryQueue::Session;
  using Timestamp = model::Timestamp;
  using SteadyClock = std::chrono::steady_clock;

  // After the store has failed.
  static constexpr std::chrono::milliseconds store_retry{1'000};
  static constexpr std::size_t outputs_a_session = 16;  // at one read

  struct Offer {
    model::SessionKey key;
    bool earlier = false;  // than outputs in hand
  };
  // Of sessions in hand.
  struct Completion {
    Session* session;
    HttpOutcome outcome;
  };
  // Whether a follow-up's delivery may begin.
  struct Begun {
    Session* session;
    model::Result<void> allowed;
  };
  struct GivenUp {
    Session* session;
    std::string output_id;
    std::string trace_id;
    std::string reason;
    model::Result<void> done;
  };
  struct Letters {
    std::vector<Offer> offers;
    std::vector<Begun> begun;
    std::vector<Completion> completions;
    std::vector<Session*> marked;
    std::vector<GivenUp> given_up;
    bool ownership_changed = false;
    bool wake = false;
    bool stop = false;
    [[nodiscard]] bool empty() const {
      return offers.empty() && completions.empty() && begun.empty() && marked.empty() &&
             given_up.empty() && !ownership_changed && !wake && !stop;
    }
  };

  Engine(DelivererSettings settings, store::Store& store, HttpClient& http,
         const model::Clock& clock, TimerClock& timer_clock, Metrics& metrics,
         const Ownership& ownership)
      : settings_(settings),
        store_(store),
        http_(http),
        clock_(clock),
        timer_clock_(timer_clock),
        metrics_(metrics),
        ownership_(ownership),
        queue_({.connections = std::max<std::size_t>(1, settings.connections)}),
        targets_(store.assets(), settings.secret_overlap) {}
  ~Engine() { stop(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  model::Result<void> start() {
    return thread_.start("deliverer", settings_.heartbeats, [this] { run(); });
  }
  void stop() { thread_.stop(); }

  [[nodiscard]] bool owns(const model::SessionKey& key) const { return ownership_.owns(key); }
  [[nodiscard]] Mailbox<Letters>& mailbox() { return *thread_.mailbox(); }

 private:
  void run();
  void read_letters(SteadyClock::time_point until);
  void drain();
  [[nodiscard]] SteadyClock::time_point next_look() const;
  [[nodiscard]] Timestamp now() const { return timer_clock_.now(); }

  // Looking for outputs.
  void take(const Offer& offer);
  void look();
  void not_read(const model::Error& error);
  void send_ready();
  [[nodiscard]] bool begin_sessions(Lane& lane);
  [[nodiscard]] bool wants(const model::SessionKey& key) { return owns(key) && !queue_.find(key); }

  // A session in hand.
  void prepare(Session& session);
  void post(Session& session, const WebhookTarget& target);
  void ask_to_begin(Session& session);
  void begin(const Begun& begun);
  void finish(Session& session, const HttpOutcome& outcome);
  void fail(Session& session, const HttpOutcome& outcome);
  void pause(Lane& lane, const HttpOutcome& outcome, const std::string& reason);
  void mark(Session& session);
  [[nodiscard]] std::function<void()> marked(Session& session);
  void give_up(Session& session, std::size_t outputs, const std::string& reason);
  void give_up_aged(Lane& lane, const std::string& reason);
  void given_up(const GivenUp& letter);
  void leave(Session& session);
  void leave_for_a_while(Session& session);

  const DelivererSettings settings_;
  store::Store& store_;
  HttpClient& http_;
  const model::Clock& clock_;
  TimerClock& timer_clock_;
  Metrics& metrics_;
  const Ownership& ownership_;

  // The thread's own.
  DeliveryQueue queue_;
  WebhookTargets targets_;
  std::mt19937_64 random_{std::random_device{}()};
  std::vector<HttpClient::Exchange> batch_;
  bool looking_ = true;         // for Endpoints with something due
  std::string looked_up_to_;    // an Endpoint
  bool clock_checked_ = false;  // against the retries of the last run
  SteadyClock::time_point next_look_{};
  SteadyClock::time_point read_after_{};  // after a read that failed
  bool read_on_ = false;                  // more was due than `reads_at_once`
  bool stop_ = false;
  ServiceThread<Letters> thread_;  // last: it uses all others
};

}  // namespace conversed::daemon
