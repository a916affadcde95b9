#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/cluster/ownership.h"
#include "daemon/delivery/deliverer_settings.h"
#include "daemon/delivery/delivery_queue.h"
#include "daemon/delivery/recent_posts.h"
#include "daemon/delivery/webhook_health.h"
#include "daemon/delivery/webhook_targets.h"
#include "daemon/ops/metrics.h"
#include "daemon/outbound/http_client.h"
#include "daemon/service/service_thread.h"
#include "daemon/timers/timer_clock.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/event.h"
#include "store/model/result.h"
#include "store/store.h"

namespace conversed::daemon {

// Sends the outputs of sessions in hand, one after the other: POSTs, marks, retries and gives up.
// Its requests wait in a batch until `take_batch`. The Deliverer's thread does all of it, except
// `recent_posts`.
class OutputSender {
 public:
  using Lane = DeliveryQueue::Lane;
  using Session = DeliveryQueue::Session;
  using SteadyClock = std::chrono::steady_clock;

  // After the store has failed.
  static constexpr std::chrono::milliseconds store_retry{1'000};

  // All must outlive it.
  struct Parts {
    store::Assets& assets;
    store::Shard& shard;
    const model::Clock& clock;
    TimerClock& timer_clock;
    Metrics& metrics;
    const Ownership& ownership;
    DeliveryQueue& queue;
    WebhookHealth& health;
  };
  // `errands` lead to the Deliverer's thread. `endpoint_failed` is called after a failure that says
  // something about all outputs of the Endpoint.
  OutputSender(const DelivererSettings& settings, Parts parts, ErrandBox errands,
               std::function<void(Lane&, const std::string& reason)> endpoint_failed);

  // Begins no more tries.
  void stop() { stop_ = true; }
  [[nodiscard]] bool stopped() const { return stop_; }

  // Sends the session's first output; drops it if its Endpoint has no webhook. Gives the outputs up
  // if the Endpoint was deleted.
  void prepare(Session& session);
  // Makes dead letters of the session's first `outputs` outputs. `outcome`: of the first one; null:
  // it was not tried.
  void give_up(Session& session, std::size_t outputs, const std::string& reason,
               const HttpOutcome* outcome);

  // Ends the session's turn. Its outputs are left in the store, and are read once its marks are
  // known. Ends the wait of these marks.
  void leave(Session& session);

  // The POSTs to be sent now.
  [[nodiscard]] std::vector<HttpClient::Exchange> take_batch() { return std::exchange(batch_, {}); }

  [[nodiscard]] const RecentPosts& recent_posts() const { return recent_; }

 private:
  [[nodiscard]] model::Timestamp now() const { return parts_.timer_clock.now(); }

  void send(Session& session, const WebhookTarget& target);
  void ask_to_begin(Session& session);
  void begin(Session& session, const model::Result<void>& allowed);
  void trace(const Session& session, const HttpOutcome& outcome, const std::string& span_id);
  void finish(Session& session, const HttpOutcome& outcome, const std::string& span_id);
  void works(Lane& lane, const model::Output& output);
  void log_works(const Lane& lane, const model::Output& output);
  [[nodiscard]] bool note_failure(Lane& lane, const model::Output& output, int status,
                                  const std::string& reason);
  void fail(Session& session, const HttpOutcome& outcome);
  [[nodiscard]] model::Timestamp next_try(const Session& session, const HttpOutcome& outcome,
                                          model::Timestamp now);
  [[nodiscard]] std::chrono::milliseconds wait_of(const Lane& lane, const HttpOutcome& outcome);
  [[nodiscard]] std::string name_of(const std::string& endpoint_id);
  // Valid until the next look at a target.
  [[nodiscard]] std::string_view organisation_of(const std::string& endpoint_id);
  void count_end(DeliveryOutcome outcome, const std::string& endpoint_id);
  void mark(Session& session, const HttpOutcome* outcome);
  // The receipt's row for the end of a try of the session's first output. `outcome` null: the
  // output was not tried.
  [[nodiscard]] std::optional<store::ReceiptMark> row_of(const Session& session,
                                                         const HttpOutcome* outcome,
                                                         std::optional<model::Timestamp> next = {},
                                                         std::string_view ended = {}) const;
  [[nodiscard]] std::function<void()> marked(Session& session);
  void given_up(Session& session, const model::Output& output, const std::string& reason,
                const model::Result<void>& done);
  void leave_for_a_while(Session& session);

  const DelivererSettings settings_;
  const Parts parts_;
  const ErrandBox errands_;
  const std::function<void(Lane&, const std::string&)> endpoint_failed_;
  RecentPosts recent_{SteadyClock::now()};
  WebhookTargets targets_;
  std::mt19937_64 random_{std::random_device{}()};
  std::vector<HttpClient::Exchange> batch_;
  bool stop_ = false;
};

}  // namespace conversed::daemon
