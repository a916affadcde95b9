#include "daemon/deliverer.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery_queue.h"
#include "daemon/logging.h"
#include "daemon/metrics.h"
#include "daemon/ownership.h"
#include "daemon/service_thread.h"
#include "daemon/webhook.h"
#include "daemon/webhook_targets.h"
#include "store/model/fault_points.h"
#include "store/store.h"

namespace conversed::daemon {
namespace {

using model::Timestamp;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// The clock is looked at again at least so often, in case it jumped.
constexpr milliseconds max_sleep{5'000};
constexpr milliseconds unhealthy_sleep{100};
constexpr milliseconds store_retry{1'000};
// After a sweep that found no room for all, or could not read on.
constexpr milliseconds cut_short_pause{100};
// What an operator put back into the outbox is found within this time.
constexpr milliseconds sweep_interval{10'000};
// The status says it all; the rest is read for the connection's sake.
constexpr milliseconds wait_for_body{250};
constexpr std::size_t sessions_a_page = 256;
constexpr std::size_t outputs_a_session = 16;
constexpr Timestamp end_of_time = model::from_unix_ms(std::numeric_limits<std::int64_t>::max());

struct Offer {
  model::SessionKey key;
  std::vector<model::Output> outputs;  // empty: they are in the store
  std::int64_t pending_up_to = 0;
};
struct Completion {
  DeliveryQueue::Session* session;  // stays while it is in flight
  HttpOutcome outcome;
};
// Whether a follow-up's delivery may begin.
struct Begun {
  DeliveryQueue::Session* session;  // stays while it is in flight
  model::Result<void> allowed;
};
struct Letters {
  std::vector<Offer> offers;
  std::vector<Begun> begun;
  std::vector<Completion> completions;
  std::optional<bool> barrier;  // passed, or the store stopped
  bool ownership_changed = false;
  bool wake = false;
  bool stop = false;
  [[nodiscard]] bool empty() const {
    return offers.empty() && completions.empty() && begun.empty() && !barrier &&
           !ownership_changed && !wake && !stop;
  }
};

bool delivered(const HttpOutcome& outcome) {
  // An answer that is too long has a status all the same.
  return outcome.status >= 200 && outcome.status < 300;
}

std::string reason_of(const HttpOutcome& outcome) {
  if (outcome.status != 0) return "the webhook answered " + std::to_string(outcome.status);
  switch (outcome.error) {
    case HttpError::timeout:
      return "the webhook did not answer in time";
    case HttpError::egress_refused:
      return "egress.allow does not open the webhook's address";
    case HttpError::invalid:
      return "the webhook's URL can't be used";
    default:
      return "the webhook could not be reached";
  }
}

}  // namespace

class Deliverer::Engine {
 public:
  Engine(DelivererSettings settings, store::Store& store, HttpClient& http,
         const model::Clock& clock, Metrics& metrics, const Ownership& ownership)
      : settings_(settings),
        store_(store),
        http_(http),
        clock_(clock),
        metrics_(metrics),
        ownership_(ownership),
        queue_({.connections = std::max<std::size_t>(1, settings.connections),
                .max_sessions = settings.max_sessions,
                .max_outputs = settings.max_outputs,
                .max_outputs_each = settings.max_outputs_each},
               term_of(ownership)),
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
  // None is asked where it is all ours.
  static DeliveryQueue::TermOf term_of(const Ownership& ownership) {
    if (!ownership.is_shared()) return {};
    return [&ownership](const model::SessionKey& key) { return ownership.term_of(key); };
  }

  enum class Sweep { none, first_barrier, reading, last_barrier };

  void run();
  void read_letters(SteadyClock::time_point until);
  void drain();
  [[nodiscard]] SteadyClock::time_point next_look() const;
  void finish(DeliveryQueue::Session& session, const HttpOutcome& outcome);
  void fail(DeliveryQueue::Session& session, const HttpOutcome& outcome);
  void give_up(DeliveryQueue::Session& session, const std::string& reason);
  void send_ready();
  void prepare(DeliveryQueue::Session& session, std::vector<HttpClient::Exchange>& batch);
  void ask_to_begin(DeliveryQueue::Session& session);
  void begin(const Begun& begun, std::vector<HttpClient::Exchange>& batch);
  void sweep_on();
  void plan_sweep(SteadyClock::time_point now);
  void put_barrier();
  void read_page();
  void note_lane(DeliveryQueue::Session& session, bool failing, const std::string& reason);

  const DelivererSettings settings_;
  store::Store& store_;
  HttpClient& http_;
  const model::Clock& clock_;
  Metrics& metrics_;
  const Ownership& ownership_;
  const store::Outbox::Wanted wanted_ = [this](const model::SessionKey& key) {
    return ownership_.owns(key);
  };

  // The thread's own.
  DeliveryQueue queue_;
  WebhookTargets targets_;
  std::mt19937_64 random_{std::random_device{}()};
  Sweep sweep_ = Sweep::none;
  bool sweep_all_ = false;
  bool sweep_complete_ = false;
  std::optional<bool> barrier_;
  std::optional<store::DueDelivery> page_end_;
  SteadyClock::time_point next_sweep_{};      // if nothing asks for one before
  SteadyClock::time_point earliest_sweep_{};  // after one that failed
  bool stop_ = false;
  ServiceThread<Letters> thread_;  // last: it uses all others
};

void Deliverer::Engine::run() {
  for (;;) {
    bool quiet = false;
    if (store_.committer().healthy()) {
      queue_.wake_due(clock_.now());
      sweep_on();
      send_ready();
      quiet = queue_.quiet() && !queue_.backlog() && sweep_ == Sweep::none;
    }
    thread_.mailbox()->set_quiet(quiet);
    read_letters(next_look());
    if (stop_) break;
  }
  drain();
}

// What is in flight gets its time to end: an answer that comes now spares a repeat.
void Deliverer::Engine::drain() {
  const auto until = SteadyClock::now() + settings_.drain_timeout;
  while (queue_.in_flight() > 0 && SteadyClock::now() < until) read_letters(until);
  if (queue_.in_flight() > 0) {
    log::info("deliveries cut off, to be sent again", {{"count", queue_.in_flight()}});
  }
}

SteadyClock::time_point Deliverer::Engine::next_look() const {
  const auto now = SteadyClock::now();
  if (!store_.committer().healthy()) return now + unhealthy_sleep;
  if (sweep_ == Sweep::reading) return now;
  auto until = now + max_sleep;
  if (sweep_ == Sweep::none) {
    until = std::clamp(queue_.wants_sweep() ? earliest_sweep_ : next_sweep_, now, until);
  }
  if (const auto due = queue_.next_due()) {
    const auto left = std::clamp<milliseconds>(*due - clock_.now(), milliseconds(0), max_sleep);
    until = std::min(until, now + left);
  }
  return until;
}

void Deliverer::Engine::read_letters(SteadyClock::time_point until) {
  auto letters = thread_.take(until);
  stop_ = stop_ || letters.stop;
  if (letters.ownership_changed) queue_.terms_changed();
  for (auto& offer : letters.offers) {
    if (offer.outputs.empty()) {
      queue_.offer_from_store(offer.key);
    } else {
      queue_.offer(offer.key, std::move(offer.outputs), offer.pending_up_to);
    }
  }
  for (auto& completion : letters.completions) finish(*completion.session, completion.outcome);
  std::vector<HttpClient::Exchange> batch;
  for (const auto& begun : letters.begun) begin(begun, batch);
  http_.send(std::move(batch));
  // After the offers: that all of them have come is what the barrier says.
  if (letters.barrier) barrier_ = letters.barrier;
}

void Deliverer::Engine::finish(DeliveryQueue::Session& session, const HttpOutcome& outcome) {
  if (outcome.error == HttpError::aborted) {
    queue_.retry(session, clock_.now() + store_retry);  // the client stopped: nothing is known
    return;
  }
  metrics_.delivery_seconds.observe(std::chrono::duration<double>(outcome.took).count());
  if (!delivered(outcome)) {
    fail(session, outcome);
    return;
  }
  model::fault_point("deliver.after_post");
  const auto& output = session.outputs.front();
  store_.committer().delivered(session.key, output);
  metrics_.deliveries(DeliveryOutcome::delivered).add();
  const std::chrono::duration<double> age = clock_.now() - output.created_at;
  metrics_.output_age_seconds.observe(std::max(0.0, age.count()));
  note_lane(session, false, {});
  queue_.done(session);
}

void Deliverer::Engine::fail(DeliveryQueue::Session& session, const HttpOutcome& outcome) {
  const auto reason = reason_of(outcome);
  const Timestamp now = clock_.now();
  const Timestamp last = session.outputs.front().created_at + settings_.retry_for;
  note_lane(session, true, reason);
  if (outcome.status == 410 || now >= last) {
    give_up(session, reason);
    return;
  }
  ++session.attempts;
  const auto wait = backoff(settings_.backoff, session.attempts, outcome.retry_after, random_());
  // The last try is at the end of `retry_for`, not somewhere before it.
  const Timestamp due = std::max(std::min(now + wait, last), now + settings_.backoff.first);
  store_.committer().reschedule(session.key, due, session.attempts);
  metrics_.deliveries(DeliveryOutcome::retried).add();
  log::debug("delivery failed", {{"sessionId", session.key.session_id},
                                 {"outputId", session.outputs.front().id},
                                 {"reason", reason},
                                 {"attempts", session.attempts}});
  queue_.retry(session, due);
}

void Deliverer::Engine::give_up(DeliveryQueue::Session& session, const std::string& reason) {
  // A store that fails would hold this thread; the output is then tried once more.
  if (!store_.committer().healthy()) {
    queue_.retry(session, clock_.now() + store_retry);
    return;
  }
  const auto& output = session.outputs.front();
  const auto given_up = store_.outbox().give_up(session.key, output, reason);
  if (!given_up && given_up.error().code != model::Errc::not_found) {
    queue_.retry(session, clock_.now() + store_retry);
    return;
  }
  metrics_.deliveries(DeliveryOutcome::dead_letter).add();
  log::warn("output undelivered, dead letter", {{"sessionId", session.key.session_id},
                                                {"endpointId", session.key.endpoint_id},
                                                {"outputId", output.id},
                                                {"traceId", output.trace_id},
                                                {"reason", reason}});
  queue_.done(session);
}

void Deliverer::Engine::note_lane(DeliveryQueue::Session& session, bool failing,
                                  const std::string& reason) {
  if (std::exchange(session.lane->failing, failing) == failing) return;
  if (failing) {
    log::warn("webhook fails", {{"endpointId", session.key.endpoint_id}, {"reason", reason}});
  } else {
    log::info("webhook works again", {{"endpointId", session.key.endpoint_id}});
  }
}

void Deliverer::Engine::send_ready() {
  std::vector<HttpClient::Exchange> batch;
  while (auto* session = queue_.next()) {
    prepare(*session, batch);
  }
  http_.send(std::move(batch));
}

// Puts the session's first output into the batch, or deals with it otherwise.
void Deliverer::Engine::prepare(DeliveryQueue::Session& session,
                                std::vector<HttpClient::Exchange>& batch) {
  const auto& output = session.outputs.front();
  if (output.withdrawable) return ask_to_begin(session);
  const auto target = targets_.of(session.key.endpoint_id);
  if (!target) {
    queue_.retry(session, clock_.now() + store_retry);
    return;
  }
  if ((*target)->url.empty()) {
    log::info("output dropped, its endpoint has no webhook any more",
              {{"endpointId", session.key.endpoint_id}, {"outputId", output.id}});
    store_.committer().delivered(session.key, output);
    metrics_.deliveries(DeliveryOutcome::dropped).add();
    queue_.done(session);
    return;
  }
  HttpRequest request;
  request.method = "POST";
  request.url = (*target)->url;
  request.body = webhook_body(session.key, output);
  const auto now = clock_.now();
  request.headers = webhook_headers(output, (*target)->keys_at(now), now, request.body);
  request.timeout = settings_.timeout;
  request.wait_for_body = wait_for_body;
  batch.push_back(
      {std::move(request), [mailbox = thread_.mailbox(), &session](HttpOutcome outcome) {
         outcome.body = {};
         mailbox->put([&](Letters& letters) {
           letters.completions.push_back({&session, std::move(outcome)});
         });
       }});
}

// What a follow-up says is taken back by the user's next message until its delivery begins; which
// of the two comes first is for the store to decide.
void Deliverer::Engine::ask_to_begin(DeliveryQueue::Session& session) {
  store_.follow_ups().begin_delivery(
      session.key, session.outputs.front().seq,
      [mailbox = thread_.mailbox(), &session](const model::Result<void>& done) {
        mailbox->put([&](Letters& letters) { letters.begun.push_back({&session, done}); });
      });
}

void Deliverer::Engine::begin(const Begun& begun, std::vector<HttpClient::Exchange>& batch) {
  DeliveryQueue::Session& session = *begun.session;
  if (!begun.allowed && begun.allowed.error().code == model::Errc::not_found) {
    metrics_.deliveries(DeliveryOutcome::dropped).add();
    queue_.done(session);
    return;
  }
  if (stop_ || !begun.allowed) {
    queue_.retry(session, clock_.now() + store_retry);
    return;
  }
  session.outputs.front().withdrawable = false;
  prepare(session, batch);
}

void Deliverer::Engine::sweep_on() {
  const auto now = SteadyClock::now();
  switch (sweep_) {
    case Sweep::none:
      if (now < earliest_sweep_ || (!queue_.wants_sweep() && now < next_sweep_)) return;
      sweep_all_ = queue_.backlog() && queue_.can_take_all();
      sweep_complete_ = false;
      page_end_.reset();
      queue_.begin_sweep();
      sweep_ = Sweep::first_barrier;
      put_barrier();
      return;
    case Sweep::first_barrier:
      if (!barrier_) return;
      sweep_ = std::exchange(barrier_, {}).value() ? Sweep::reading : Sweep::last_barrier;
      if (sweep_ == Sweep::reading) {
        read_page();
      } else {
        put_barrier();
      }
      return;
    case Sweep::reading:
      read_page();
      return;
    case Sweep::last_barrier:
      if (!barrier_) return;
      if (!std::exchange(barrier_, {}).value()) sweep_complete_ = false;
      sweep_ = Sweep::none;
      queue_.end_sweep(sweep_complete_, sweep_all_);
      plan_sweep(now);
      sweep_on();
      return;
  }
}

// When to read the outbox again if nothing asks for it before.
void Deliverer::Engine::plan_sweep(SteadyClock::time_point now) {
  earliest_sweep_ = sweep_complete_ ? now : now + cut_short_pause;
  const bool catch_up = queue_.backlog() && queue_.can_take_all();
  next_sweep_ = !sweep_complete_         ? earliest_sweep_
                : catch_up               ? now + store_retry
                : ownership_.is_shared() ? now + settings_.look_interval
                                         : now + sweep_interval;
}

void Deliverer::Engine::put_barrier() {
  store_.committer().write(
      [](store::Writer&) -> model::Result<void> { return {}; },
      [mailbox = thread_.mailbox()](const model::Result<void>& written) {
        mailbox->put([&](Letters& letters) { letters.barrier = written.has_value(); });
      });
}

void Deliverer::Engine::read_page() {
  const Timestamp now = clock_.now();
  auto page = store_.outbox().due(sweep_all_ ? end_of_time : now, sessions_a_page,
                                  outputs_a_session, page_end_ ? &*page_end_ : nullptr,
                                  ownership_.is_shared() ? wanted_ : store::Outbox::Wanted());
  bool more = page && !page->empty();
  if (page && page->empty()) sweep_complete_ = true;
  if (!page) log::warn("outbox can't be read", {{"error", page.error().message}});
  if (more) {
    page_end_ = store::DueDelivery{
        .key = page->back().key, .due_at = page->back().due_at, .attempts = 0, .outputs = {}};
    for (auto& due : *page) {
      more = more && queue_.load(std::move(due), outputs_a_session, now);
    }
  }
  if (more) return;
  sweep_ = Sweep::last_barrier;
  put_barrier();
}

Deliverer::Deliverer(DelivererSettings settings, store::Store& store, HttpClient& http,
                     const model::Clock& clock, Metrics& metrics, const Ownership& ownership)
    : engine_(std::make_unique<Engine>(settings, store, http, clock, metrics, ownership)) {}

Deliverer::~Deliverer() = default;

model::Result<void> Deliverer::start() {
  return engine_->start();
}

void Deliverer::stop() {
  engine_->stop();
}

std::string_view Deliverer::name() const {
  return "deliverer";
}

void Deliverer::offer(const model::SessionKey& key, std::vector<model::Output> outputs,
                      std::int64_t pending_up_to) {
  if (outputs.empty()) return;
  engine_->mailbox().put([&](Letters& letters) {
    letters.offers.push_back({key, std::move(outputs), pending_up_to});
  });
}

// News of all sessions end here, also where nobody reads these letters.
void Deliverer::offer_from_store(const model::SessionKey& key) {
  if (!engine_->owns(key)) return;
  engine_->mailbox().put([&](Letters& letters) { letters.offers.push_back({key, {}, 0}); });
}

void Deliverer::ownership_changed() {
  engine_->mailbox().put([](Letters& letters) { letters.ownership_changed = true; });
}

void Deliverer::wake() {
  engine_->mailbox().put([](Letters& letters) { letters.wake = true; });
}

bool Deliverer::idle() const {
  return engine_->mailbox().quiet();
}

}  // namespace conversed::daemon
