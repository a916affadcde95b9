#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "daemon/cluster/ownership.h"
#include "daemon/delivery/deliverer_settings.h"
#include "daemon/delivery/delivery_queue.h"
#include "daemon/delivery/output_sender.h"
#include "daemon/delivery/recent_posts.h"
#include "daemon/delivery/webhook_health.h"
#include "daemon/ops/metrics.h"
#include "daemon/outbound/http_client.h"
#include "daemon/service/service.h"
#include "daemon/service/service_thread.h"
#include "daemon/timers/timer_clock.h"
#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/store.h"

namespace conversed::daemon {

// Sends pending outputs to their Endpoints' webhooks: one session in order and one at a time, many
// sessions side by side. DeliveryQueue shares the connections among them. At least once, with a
// constant `webhook-id`: a crash between the POST and its mark repeats the POST.
//
// An answer of 2xx marks the output as delivered; 410 Gone makes it a dead letter at once. After
// any other outcome the output is sent again with backoff, until `retry_for` has passed since its
// creation. Then it becomes a dead letter with its reason, and the session's next output follows.
// If the Endpoint or its webhook is gone, its outputs are dropped. A failing Endpoint waits as a
// whole: one try shows whether it works again, and outputs that are too old by then are given up
// untried. An Endpoint that has failed for `pause_after` is paused (WebhookHealth). 400, 413, 415
// and 422 refuse one output: they do not pause the Endpoint, and end its pause.
//
// With a free connection the Deliverer reads the next due rows of the Endpoint whose turn it is. If
// the Endpoint answers, it reads some rows ahead. It does not read outputs that commits hand over
// in memory (DeliveryQueue). In a cluster, a commit hands them over if this daemon has offered all
// older outputs of the session. Otherwise it only wakes the Deliverer, since another daemon may
// have left older outputs. A regular look finds other rows. While the store fails, no output is
// sent, since none could be marked. In a cluster each daemon sends the outputs of its own sessions
// (Ownership).
//
// Invariants:
// - A session's outputs stay in hand together until the commits of all their marks are known, so
//   that no output is sent twice or overtakes an earlier one.
//   Kept by: DeliveryQueueTest.SessionIsInHandUntilItsMarksAreStored,
//   DelivererTest.EachSessionHasOneInFlight.
// - The Deliverer begins with the session's oldest row, even if another daemon left it.
//   Kept by: DelivererOfSome.OutputsThatAnotherDaemonLeftGoFirst.
// - The delivery of a follow-up begins with a committed write (`Outbox::begin_delivery`), so
//   that either the delivery or the answer that withdraws it comes first.
//   Kept by: FollowUps.AnswerWithdrawsAFollowUpWhoseDeliveryHasNotBegun.
// - Retries and ages use the clock of timers, also across restarts. A wait that is longer than any
//   retry's wait ends at the start: the clock was set back while no daemon ran.
//   Kept by: DelivererTest.ClockThatIsSetBackHoldsNothingUp,
//   DelivererTest.RestartKeepsTheClockOfRetriesAndAges,
//   DelivererTest.RetryIsNotPutOffByAClockThatIsSetBackWhileNoDaemonRuns.
//
// `offer`, `offer_earlier`, `ownership_changed`, `retry`, `resume`, `wake`, `idle` are thread-safe
// and never block; they do nothing once stopped. One thread of its own does all the work.
class Deliverer final : public Service {
 public:
  using SteadyClock = std::chrono::steady_clock;

  // Delivers the outputs of the shard. `http` is started before and stopped after it. If it has no
  // thread of its own, it runs on the Deliverer's, and is this Deliverer's alone. Reads of the
  // store then delay exchanges, so the store has to be local. All must outlive the Deliverer.
  Deliverer(DelivererSettings settings, store::Assets& assets, store::Shard& shard,
            HttpClient& http, const model::Clock& clock, TimerClock& timer_clock, Metrics& metrics,
            const Ownership& ownership);
  ~Deliverer() override { thread_.stop(); }  // before its members end

  [[nodiscard]] model::Result<void> start() override {
    return thread_.start("deliverer", settings_.heartbeats, [this] { run(); });
  }

  // Begins no more POSTs and waits up to `drain_timeout` for POSTs in flight. Then the store's
  // Committer, which must run longer, has all marks. A POST that was cut off is repeated after the
  // next start.
  void stop() override { thread_.stop(); }

  // Takes over the pending outputs of a SessionCommit that is now committed. `older_are_known`:
  // this was called for all older outputs of the session, too.
  void offer(const store::SessionCommit& committed, bool older_are_known);

  // Tells of pending outputs of the session that may come before outputs in hand.
  void offer_earlier(const model::SessionKey& key);

  // Looks for the outputs of the sessions that it owns now. For a lost session only the POST in
  // flight ends.
  void ownership_changed() {
    post(thread_.mailbox(), [this] {
      looks_.owners_changed(SteadyClock::now());
      look_again();
    });
  }

  // Tries the session's outputs now, even if its Endpoint fails or is paused.
  void retry(const model::SessionKey& key);
  // Tries the Endpoint now. An operator has ended its pause in the store.
  void resume(const std::string& endpoint_id) {
    post(thread_.mailbox(), [this, endpoint_id] {
      health_.resumed(endpoint_id, now());
      try_now(endpoint_id);
    });
  }

  // The next POST of a session as this daemon knows it, by the wall clock.
  struct Sending {
    std::optional<model::Timestamp> since{};  // when it began; none: none is under way
    // The Endpoint gets no POST before this time; none: it is not put off.
    std::optional<model::Timestamp> not_before{};
  };
  // Of each of the sessions, in order. Waits for the Deliverer's thread, for a second at most; then
  // nothing is known.
  [[nodiscard]] std::vector<Sending> sending(const std::vector<model::SessionKey>& keys);

  // The POSTs that this daemon has sent to the Endpoint lately. Thread-safe.
  [[nodiscard]] RecentPosts::Count recent_posts(const std::string& endpoint_id) const {
    return sender_.recent_posts().of(endpoint_id, SteadyClock::now());
  }

  // Looks at the clock again: it jumped.
  void wake() { thread_.mailbox()->wake(); }

  // Whether nothing is in flight or ready to be sent. Outputs that wait for a retry do not count.
  // For tests.
  [[nodiscard]] bool idle() const { return thread_.mailbox()->quiet(); }

 private:
  using Lane = DeliveryQueue::Lane;
  using Session = DeliveryQueue::Session;

  static constexpr std::size_t outputs_a_session = 16;  // at one read
  // How many bytes of outputs may be in the mailbox, about. Other outputs are read from the store.
  static constexpr std::size_t most_handed_over = std::size_t{1} << 20;

  void run();
  void run_errands(SteadyClock::time_point until);
  void drain();
  [[nodiscard]] SteadyClock::time_point next_look() const;
  [[nodiscard]] model::Timestamp now() const { return timer_clock_.now(); }

  // Looking for outputs.
  void take(store::DueDelivery newest, SteadyClock::time_point unseen_until);
  void take_earlier(const model::SessionKey& key);
  void try_now(const std::string& endpoint_id);
  void take_first(const model::SessionKey& key);
  void look();
  void look_again();
  [[nodiscard]] model::Result<void> look_at_health();
  void not_read(const model::Error& error);
  void send_ready();
  [[nodiscard]] bool begin_sessions(Lane& lane);
  void begin_waiting(Lane& lane);
  [[nodiscard]] bool read(Lane& lane);
  [[nodiscard]] bool wants(const model::SessionKey& key) {
    return ownership_.owns(key) && !queue_.find(key);
  }

  void give_up_aged(Lane& lane, const std::string& reason);

  const DelivererSettings settings_;
  store::Shard& shard_;
  HttpClient& http_;
  const model::Clock& clock_;
  TimerClock& timer_clock_;
  const Ownership& ownership_;
  std::atomic<std::size_t> handed_over_{0};  // bytes in the mailbox
  ServiceThread<Errands> thread_;

  // The thread's own.
  DeliveryQueue queue_;
  WebhookHealth health_;
  OutputSender sender_;
  bool looking_ = true;       // whether to look for Endpoints with due outputs
  std::string looked_up_to_;  // an Endpoint
  bool health_read_ = false;
  bool clock_checked_ = false;  // whether the clock was compared with the retries of the last run
  OwnersLook looks_;
  SteadyClock::time_point next_look_{};
  SteadyClock::time_point read_after_{};  // after a read that failed
  bool read_on_ = false;                  // more was due than `reads_at_once`
};

}  // namespace conversed::daemon
