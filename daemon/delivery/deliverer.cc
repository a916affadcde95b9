#include "daemon/delivery/deliverer.h"

#include <algorithm>
#include <utility>

#include "daemon/ops/logging.h"
#include "daemon/service/backoff.h"
#include "daemon/service/question.h"

namespace conversed::daemon {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

namespace {

// The longest sleep between two looks at the clock, which may jump.
constexpr milliseconds max_sleep{5'000};
constexpr milliseconds unhealthy_sleep{100};
constexpr std::size_t others_a_page = 64;  // sessions of other daemons that a page may hold
constexpr std::size_t endpoints_a_page = 256;
// The Endpoints that are read before the thread takes its letters.
constexpr int reads_at_once = 64;
constexpr std::size_t aged_a_page = 64;

}  // namespace

Deliverer::Deliverer(DelivererSettings settings, store::Assets& assets, store::Shard& shard,
                     HttpClient& http, const model::Clock& clock, TimerClock& timer_clock,
                     Metrics& metrics, const Ownership& ownership)
    : settings_(settings),
      shard_(shard),
      http_(http),
      clock_(clock),
      timer_clock_(timer_clock),
      ownership_(ownership),
      queue_({.connections = std::max<std::size_t>(1, settings.connections),
              .outputs_a_session = outputs_a_session}),
      health_(shard.endpoint_health(), settings.pause_after, settings.retry_for),
      sender_(settings,
              {.assets = assets,
               .shard = shard,
               .clock = clock,
               .timer_clock = timer_clock,
               .metrics = metrics,
               .ownership = ownership,
               .queue = queue_,
               .health = health_},
              thread_.mailbox(),
              [this](Lane& lane, const std::string& reason) { give_up_aged(lane, reason); }),
      looks_(settings.look_interval) {
  if (!http.has_thread()) thread_.mailbox()->wake_by([&http] { http.wake(); });
}

void Deliverer::run() {
  for (;;) {
    bool quiet = false;
    if (shard_.committer().healthy()) {
      look();
      send_ready();
      quiet = queue_.quiet() && !looking_;
    }
    thread_.mailbox()->set_quiet(quiet);
    run_errands(next_look());
    if (sender_.stopped()) break;
  }
  drain();
}

// Gives the POSTs in flight time to end. A POST that ends now is not repeated after the next start.
void Deliverer::drain() {
  const auto until = SteadyClock::now() + settings_.drain_timeout;
  while (queue_.in_flight() > 0 && SteadyClock::now() < until) run_errands(until);
  if (queue_.in_flight() > 0) {
    log::info("deliveries cut off, to be sent again", {{"count", queue_.in_flight()}});
  }
}

SteadyClock::time_point Deliverer::next_look() const {
  const auto steady = SteadyClock::now();
  if (!shard_.committer().healthy()) return steady + unhealthy_sleep;
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

void Deliverer::run_errands(SteadyClock::time_point until) {
  if (!http_.has_thread()) http_.run_once(thread_.mailbox()->ready() ? SteadyClock::now() : until);
  const auto errands = thread_.take(until);
  if (errands.stop) sender_.stop();
  for (const auto& work : errands.work) work();
  http_.send(sender_.take_batch());
}

void Deliverer::take(store::DueDelivery newest, SteadyClock::time_point unseen_until) {
  const auto generation = ownership_.generation_of(newest.key);
  if (generation == 0) return;
  Session* session = queue_.find(newest.key);
  if (session == nullptr) {
    Lane& lane = queue_.lane(newest.key.endpoint_id, newest.key.project_id);
    // Before the read, another owner of the partition may have left older outputs.
    if (newest.outputs.empty() || generation > lane.generation ||
        !queue_.takes_newest(lane, unseen_until, SteadyClock::now())) {
      return queue_.wake(lane, now());
    }
    return queue_.wait(queue_.take(lane, std::move(newest), generation), now());
  }
  queue_.add(*session, std::move(newest.outputs), now(), SteadyClock::now());
  if (session->more && session->outputs.empty()) sender_.leave(*session);
}

void Deliverer::take_earlier(const model::SessionKey& key) {
  Session* session = queue_.find(key);
  if (session == nullptr) {
    if (ownership_.owns(key)) queue_.wake(queue_.lane(key.endpoint_id, key.project_id), now());
    return;
  }
  session->more = true;
  if (!session->begun) return sender_.leave(*session);
  // All outputs but the first, which may be in flight, are read again.
  if (session->outputs.size() > 1) session->outputs.resize(1);
}

void Deliverer::try_now(const std::string& endpoint_id) {
  Lane* const lane = queue_.find_lane(endpoint_id);
  if (lane == nullptr) return;
  queue_.put_off(*lane, now());
  queue_.wake(*lane, now());
}

// An Endpoint that fails gets one try, which would be that of the session that is due longest.
void Deliverer::take_first(const model::SessionKey& key) {
  const auto generation = ownership_.generation_of(key);
  if (generation == 0 || queue_.find(key) != nullptr) return;
  auto due = shard_.outbox().pending_of(key, outputs_a_session);
  if (!due) return not_read(due.error());
  if (!*due || (*due)->outputs.empty() || (*due)->due_at > now()) return;
  const bool more = (*due)->outputs.size() == outputs_a_session;
  Lane& lane = queue_.lane(key.endpoint_id, key.project_id);
  Session& session = queue_.take(lane, **std::move(due), generation);
  session.more = more;
  queue_.wait(session, now());
}

void Deliverer::look_again() {
  looking_ = true;
  looked_up_to_.clear();
}

// Reads the next page of Endpoints with pending outputs.
void Deliverer::look() {
  const auto steady = SteadyClock::now();
  if (steady < read_after_) return;
  if (!clock_checked_) {
    const auto checked =
        shard_.outbox().bring_forward(now() + longest_wait(settings_.backoff), now());
    if (!checked) return not_read(checked.error());
    clock_checked_ = true;
  }
  if (!looking_ && steady < next_look_) return;
  looking_ = true;
  if (looked_up_to_.empty()) {
    if (auto read = look_at_health(); !read) return not_read(read.error());
  }
  const auto page = shard_.outbox().endpoints(looked_up_to_, endpoints_a_page);
  if (!page) return not_read(page.error());
  for (const auto& each : *page) {
    Lane& lane = queue_.lane(each.endpoint_id, each.project_id);
    queue_.wake(lane, each.due_at);
    if (const auto probe = health_.next_probe(each.endpoint_id)) {
      queue_.pause(lane, *probe);
    } else {
      queue_.resume(lane, now());  // another daemon may have ended the pause
    }
  }
  if (page->size() == endpoints_a_page) {
    looked_up_to_ = page->back().endpoint_id;
    return;
  }
  looking_ = false;
  looked_up_to_.clear();
  next_look_ = looks_.next(steady);
  queue_.forget_idle();
}

model::Result<void> Deliverer::look_at_health() {
  if (!health_read_ || ownership_.is_shared()) {
    if (auto read = health_.read(); !read) return read;
    health_read_ = true;
  }
  const auto forgotten = health_.forget(now());
  if (!forgotten) return model::fail(forgotten.error());
  // A pause ends with its last output.
  for (const auto& endpoint_id : *forgotten) {
    if (Lane* lane = queue_.find_lane(endpoint_id)) queue_.put_off(*lane, now());
  }
  return {};
}

void Deliverer::not_read(const model::Error& error) {
  log::warn("outbox can't be read", {{"error", error.message}});
  read_after_ = SteadyClock::now() + OutputSender::store_retry;
}

void Deliverer::send_ready() {
  read_on_ = false;
  if (SteadyClock::now() < read_after_) return;
  for (int reads = 0; Lane* lane = queue_.next(now(), SteadyClock::now()); ++reads) {
    read_on_ = reads == reads_at_once;
    if (read_on_ || !begin_sessions(*lane)) break;
  }
  http_.send(sender_.take_batch());
}

// Begins as many of the Endpoint's sessions as there is room for: first its waiting sessions, then
// the next due sessions of the store. False: the store fails.
bool Deliverer::begin_sessions(Lane& lane) {
  begin_waiting(lane);
  if (!lane.waiting.empty()) return true;
  if (!lane.must_read) {
    queue_.read_all(lane, std::nullopt);
    return true;
  }
  if (!read(lane)) return false;
  begin_waiting(lane);
  return true;
}

void Deliverer::begin_waiting(Lane& lane) {
  while (queue_.room(lane, SteadyClock::now()) > 0) {
    Session* session = queue_.next_waiting(lane);
    if (session == nullptr) return;
    queue_.begin(*session, SteadyClock::now());
    sender_.prepare(*session);
  }
}

// Reads the Endpoint's next due sessions and lets them wait for connections. False: the store
// fails.
bool Deliverer::read(Lane& lane) {
  auto room = queue_.room_to_read(lane, SteadyClock::now());
  if (room == 0) return true;  // the Endpoint has become slow since its turn began
  if (!lane.read_up_to) {
    lane.unreadable = false;
    lane.generation = ownership_.newest_generation();
  }
  const std::size_t bytes = queue_.bytes_to_read();
  const auto at_once = std::clamp<std::size_t>(queue_.room(lane, SteadyClock::now()), 1, room);
  if (bytes == 0) room = at_once;
  const std::size_t wait = room - at_once;
  // The page also has the sessions in hand.
  const std::size_t limit = room + lane.in_hand + (ownership_.is_shared() ? others_a_page : 0);
  std::size_t looked_at = 0;
  auto page = shard_.outbox().due(lane.endpoint_id, now(), limit, outputs_a_session,
                                  lane.read_up_to ? &*lane.read_up_to : nullptr,
                                  [&](const model::SessionKey& key, std::size_t read) {
                                    if (room == 0 || (room <= wait && read > bytes)) return false;
                                    ++looked_at;
                                    if (!wants(key)) return false;
                                    --room;
                                    return true;
                                  });
  if (!page) {
    not_read(page.error());
    return false;
  }
  lane.read_at = SteadyClock::now();
  auto& found = page->sessions;
  if (looked_at == found.size() && found.size() < limit) {
    queue_.read_all(lane, page->next);
  } else {
    const auto& last = found.at(looked_at - 1);
    lane.read_up_to = store::DueDelivery{.due_at = last.due_at, .session = last.session};
  }
  for (auto& each : found) {
    if (each.damaged) {
      lane.unreadable = true;
      log::error("outputs can't be read and are not delivered",
                 {{"sessionId", each.key.session_id}, {"endpointId", each.key.endpoint_id}});
    }
    if (each.outputs.empty()) continue;
    const bool more = each.outputs.size() == outputs_a_session;
    const auto generation = ownership_.generation_of(each.key);
    Session& session = queue_.take(lane, std::move(each), generation);
    session.more = more;
    queue_.wait(session, now());
  }
  return true;
}

// Every commit calls this, also before `start` and for sessions of other daemons.
void Deliverer::offer(const store::SessionCommit& committed, bool older_are_known) {
  if (!ownership_.owns(committed.key)) return;
  store::DueDelivery newest;
  newest.key = committed.key;
  std::size_t bytes = 0;
  if (older_are_known || !ownership_.is_shared()) {
    for (const auto& output : committed.outputs) {
      if (output.delivery != model::Delivery::pending) continue;
      newest.outputs.push_back(output);
      newest.outputs.back().created_at += committed.timers_ahead;
      bytes += model::size_of(output);
    }
    if (newest.outputs.size() > outputs_a_session || handed_over_ + bytes > most_handed_over) {
      newest.outputs.clear();
      bytes = 0;
    }
  }
  handed_over_ += bytes;
  post(thread_.mailbox(),
       [this, newest = std::move(newest), bytes, unseen_until = committed.unseen_until]() mutable {
         handed_over_ -= bytes;
         take(std::move(newest), unseen_until);
       });
}

std::vector<Deliverer::Sending> Deliverer::sending(const std::vector<model::SessionKey>& keys) {
  auto all = ask(thread_.mailbox(), [this, keys] {
    std::vector<Sending> found(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!ownership_.owns(keys[i])) continue;
      const Session* session = queue_.find(keys[i]);
      if (session != nullptr && session->begun) {
        found[i].since = by_wall_clock(clock_, *session->begun);
      }
      const Lane* lane = queue_.find_lane(keys[i].endpoint_id);
      if (lane != nullptr && lane->not_before > now()) {
        found[i].not_before = clock_.now() + (lane->not_before - now());
      }
    }
    return found;
  });
  all.resize(keys.size());
  return all;
}

void Deliverer::offer_earlier(const model::SessionKey& key) {
  if (!ownership_.owns(key)) return;
  post(thread_.mailbox(), [this, key] { take_earlier(key); });
}

void Deliverer::retry(const model::SessionKey& key) {
  if (!ownership_.owns(key)) return;
  post(thread_.mailbox(), [this, key] {
    take_earlier(key);
    try_now(key.endpoint_id);
    take_first(key);
  });
}

// After another failure of the Endpoint: gives up its waiting outputs that are too old.
void Deliverer::give_up_aged(Lane& lane, const std::string& reason) {
  const model::Timestamp now = this->now();
  auto page = shard_.outbox().due(lane.endpoint_id, now, aged_a_page, outputs_a_session,
                                  lane.read_up_to ? &*lane.read_up_to : nullptr,
                                  [this](const auto& key, std::size_t) { return wants(key); });
  if (!page) return not_read(page.error());
  lane.read_up_to.reset();
  if (page->sessions.size() == aged_a_page) {
    const auto& last = page->sessions.back();
    lane.read_up_to = store::DueDelivery{.due_at = last.due_at, .session = last.session};
    lane.read_again = true;  // the page may also hold sessions with younger outputs
  }
  for (auto& each : page->sessions) {
    const auto aged = health_.too_old_of(lane.endpoint_id, each.outputs, now);
    if (aged == 0) continue;
    const auto generation = ownership_.generation_of(each.key);
    sender_.give_up(queue_.take(lane, std::move(each), generation), aged, reason, nullptr);
  }
}

}  // namespace conversed::daemon
