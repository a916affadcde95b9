#include "daemon/delivery/deliverer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "daemon/ops/logging.h"

namespace conversed::daemon {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

namespace {

// The longest sleep between two looks at the clock, which may jump.
constexpr milliseconds max_sleep{5'000};
constexpr milliseconds unhealthy_sleep{100};
// Outputs of which no commit told, such as those from before the start, are found within this time.
constexpr milliseconds look_interval{10'000};
constexpr std::size_t others_a_page = 64;  // sessions of other daemons
constexpr std::size_t endpoints_a_page = 256;
// Endpoints read between two looks at the letters.
constexpr int reads_at_once = 64;

}  // namespace

Deliverer::Deliverer(DelivererSettings settings, store::Store& store, HttpClient& http,
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

void Deliverer::run() {
  for (;;) {
    bool quiet = false;
    if (store_.committer().healthy()) {
      look();
      send_ready();
      quiet = queue_.quiet() && !looking_;
    }
    thread_.mailbox()->set_quiet(quiet);
    read_letters(next_look());
    if (stop_) break;
  }
  drain();
}

// POSTs in flight get time to end: an answer that comes now spares a repeat.
void Deliverer::drain() {
  const auto until = SteadyClock::now() + settings_.drain_timeout;
  while (queue_.in_flight() > 0 && SteadyClock::now() < until) read_letters(until);
  if (queue_.in_flight() > 0) {
    log::info("deliveries cut off, to be sent again", {{"count", queue_.in_flight()}});
  }
}

SteadyClock::time_point Deliverer::next_look() const {
  const auto steady = SteadyClock::now();
  if (!store_.committer().healthy()) return steady + unhealthy_sleep;
  if (looking_ || read_on_) return std::max(steady, read_after_);
  auto until = std::min(steady + max_sleep, std::max(steady, next_look_));
  if (read_after_ > steady) until = std::min(until, read_after_);
  if (const auto slow = queue_.next_slow(steady)) until = std::min(until, *slow);
  if (const auto due = queue_.next_due()) {
    const auto left = std::clamp<milliseconds>(*due - now(), milliseconds(0), max_sleep);
    until = std::min(until, std::max(steady + left, read_after_));
  }
  return until;
}

void Deliverer::read_letters(SteadyClock::time_point until) {
  auto letters = thread_.take(until);
  stop_ = stop_ || letters.stop;
  if (letters.ownership_changed) {
    looking_ = true;
    looked_up_to_.clear();
  }
  // Marks first: an offer of the same session then finds it free and reads it again.
  for (Session* session : letters.marked) {
    --session->marks;
    queue_.release_if_done(*session, now());
  }
  for (const auto& each : letters.given_up) given_up(each);
  for (const auto& offer : letters.offers) take(offer);
  for (const auto& completion : letters.completions)
    finish(*completion.session, completion.outcome);
  for (const auto& each : letters.begun) begin(each);
  http_.send(std::exchange(batch_, {}));
}

void Deliverer::take(const Offer& offer) {
  if (!ownership_.owns(offer.key)) return;
  Session* session = queue_.find(offer.key);
  if (session == nullptr) {
    return queue_.wake(queue_.lane(offer.key.endpoint_id, offer.key.project_id), now());
  }
  session->more = true;
  // All outputs but the first, which may be in flight, are read again.
  if (offer.earlier && session->outputs.size() > 1) {
    session->outputs.erase(session->outputs.begin() + 1, session->outputs.end());
  }
}

// Reads the next page of Endpoints with pending outputs.
void Deliverer::look() {
  const auto steady = SteadyClock::now();
  if (steady < read_after_) return;
  if (!clock_checked_) {
    const auto checked =
        store_.outbox().bring_forward(now() + longest_wait(settings_.backoff), now());
    if (!checked) return not_read(checked.error());
    clock_checked_ = true;
  }
  if (!looking_ && steady < next_look_) return;
  looking_ = true;
  const auto page = store_.outbox().endpoints(looked_up_to_, endpoints_a_page);
  if (!page) return not_read(page.error());
  for (const auto& each : *page) {
    queue_.wake(queue_.lane(each.endpoint_id, each.project_id), each.due_at);
  }
  if (page->size() == endpoints_a_page) {
    looked_up_to_ = page->back().endpoint_id;
    return;
  }
  looking_ = false;
  looked_up_to_.clear();
  next_look_ = steady + (ownership_.is_shared() ? settings_.look_interval : look_interval);
  queue_.forget_idle();
}

void Deliverer::not_read(const model::Error& error) {
  log::warn("outbox can't be read", {{"error", error.message}});
  read_after_ = SteadyClock::now() + store_retry;
}

void Deliverer::send_ready() {
  read_on_ = false;
  if (SteadyClock::now() < read_after_) return;
  for (int reads = 0; Lane* lane = queue_.next(now(), SteadyClock::now()); ++reads) {
    read_on_ = reads == reads_at_once;
    if (read_on_ || !begin_sessions(*lane)) break;
  }
  http_.send(std::exchange(batch_, {}));
}

// Reads the Endpoint's next due sessions and begins as many as there is room for. False: the store
// fails.
bool Deliverer::begin_sessions(Lane& lane) {
  auto room = queue_.room(lane, SteadyClock::now());
  if (room == 0) return true;  // it has become slow since its turn came
  // The page also has the sessions in hand.
  const std::size_t limit = room + lane.in_hand + (ownership_.is_shared() ? others_a_page : 0);
  std::size_t looked_at = 0;
  auto page = store_.outbox().due(lane.endpoint_id, now(), limit, outputs_a_session,
                                  lane.read_up_to ? &*lane.read_up_to : nullptr,
                                  [&](const model::SessionKey& key) {
                                    if (room == 0) return false;
                                    ++looked_at;
                                    if (!wants(key)) return false;
                                    --room;
                                    return true;
                                  });
  if (!page) {
    not_read(page.error());
    return false;
  }
  auto& found = page->sessions;
  if (looked_at == found.size() && found.size() < limit) {
    queue_.read_all(lane, page->next);
  } else {
    const auto& last = found.at(looked_at - 1);
    lane.read_up_to = store::DueDelivery{
        .key = {}, .due_at = last.due_at, .attempts = 0, .outputs = {}, .session = last.session};
  }
  for (auto& each : found) {
    if (each.damaged) {
      log::error("outputs can't be read and are not delivered",
                 {{"sessionId", each.key.session_id}, {"endpointId", each.key.endpoint_id}});
    }
    if (each.outputs.empty()) continue;
    const bool more = each.outputs.size() == outputs_a_session;
    const auto generation = ownership_.generation_of(each.key);
    Session& session = queue_.take(lane, std::move(each), generation);
    session.more = more;
    queue_.begin(session, SteadyClock::now());
    prepare(session);
  }
  return true;
}

// Commits of all sessions call this, also before `start` and for sessions of other daemons.
void Deliverer::put(const Offer& offer) {
  if (!ownership_.owns(offer.key)) return;
  thread_.mailbox()->put([&](Letters& letters) { letters.offers.push_back(offer); });
}

}  // namespace conversed::daemon
