#include "daemon/delivery/deliverer.h"

#include <algorithm>
#include <utility>

#include "daemon/delivery/webhook.h"
#include "daemon/ops/logging.h"
#include "daemon/outbound/attempt.h"
#include "store/model/trace.h"
#include "store/model/url.h"
#include "store/runtime/fault_points.h"

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
// Only the status matters; the body is read to reuse the connection.
constexpr milliseconds wait_for_body{250};
// The longest wait of a failing Endpoint. It is bounded, because the Endpoint may accept outputs of
// its other sessions.
constexpr milliseconds longest_wait_of_all{60'000};
constexpr std::size_t aged_a_page = 64;

bool delivered(const HttpOutcome& outcome) {
  // An answer that is too long also has a status.
  return outcome.status >= 200 && outcome.status < 300;
}

// The webhook works, and refuses this output.
bool refuses_output(int status) {
  return status == 400 || status == 413 || status == 415 || status == 422;
}

// How many outputs, from the first on, are too old for another try.
template <typename Outputs>
std::size_t aged_of(const Outputs& outputs, const WebhookHealth& health,
                    const std::string& endpoint_id, model::Timestamp now) {
  const auto young = std::ranges::find_if(outputs, [&](const model::Output& output) {
    return health.too_old_at(endpoint_id, output.created_at, now) > now;
  });
  return static_cast<std::size_t>(young - outputs.begin());
}

}  // namespace

Deliverer::Deliverer(DelivererSettings settings, store::Assets& assets, store::Shard& shard,
                     HttpClient& http, const model::Clock& clock, TimerClock& timer_clock,
                     Metrics& metrics, const Ownership& ownership)
    : settings_(settings),
      shard_(shard),
      http_(http),
      clock_(clock),
      timer_clock_(timer_clock),
      metrics_(metrics),
      ownership_(ownership),
      queue_({.connections = std::max<std::size_t>(1, settings.connections),
              .outputs_a_session = outputs_a_session}),
      targets_(assets, settings.secret_overlap),
      health_(shard.endpoint_health(), settings.pause_after, settings.retry_for),
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
    if (stop_) break;
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
  stop_ = stop_ || errands.stop;
  for (const auto& work : errands.work) work();
  http_.send(std::exchange(batch_, {}));
}

void Deliverer::take(store::DueDelivery newest, SteadyClock::time_point unseen_until) {
  for (const auto& output : newest.outputs) handed_over_ -= model::size_of(output);
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
  queue_.add(*session, std::move(newest.outputs));
}

void Deliverer::take_earlier(const model::SessionKey& key) {
  Session* session = queue_.find(key);
  if (session == nullptr) {
    if (ownership_.owns(key)) queue_.wake(queue_.lane(key.endpoint_id, key.project_id), now());
    return;
  }
  session->more = true;
  if (!session->begun) return leave(*session);
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
    prepare(*session);
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
    }
  }
  if (!newest.outputs.empty()) handed_over_ += bytes;
  post(thread_.mailbox(),
       [this, newest = std::move(newest), unseen_until = committed.unseen_until]() mutable {
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

// ---- A session in hand: its outputs are sent one after the other, marked, retried and given up

// Sends the session's first output; drops it if its Endpoint has no webhook. Gives the outputs up
// if the Endpoint was deleted.
void Deliverer::prepare(Session& session) {
  while (!session.outputs.empty()) {
    const auto& output = session.outputs.front();
    if (stop_ || !shard_.committer().healthy() ||
        ownership_.generation_of(session.key) != session.generation) {
      return leave(session);
    }
    const auto target = targets_.of(session.key.endpoint_id);
    if (!target) return leave_for_a_while(session);
    if ((*target)->organisation_id.empty()) {
      return give_up(session, session.outputs.size(), "its Endpoint was deleted", nullptr);
    }
    if (output.withdrawable) return ask_to_begin(session);
    if (!(*target)->url.empty()) return send(session, **target);
    log::info("output dropped, its endpoint has no webhook any more",
              {{"endpointId", session.key.endpoint_id},
               {"endpoint", (*target)->name},
               {"outputId", output.id},
               {"traceId", output.trace_id}});
    count_end(DeliveryOutcome::dropped, session.key.endpoint_id);
    mark(session, nullptr);
  }
  queue_.land(session);
  queue_.release_if_done(session, now());
}

void Deliverer::send(Session& session, const WebhookTarget& target) {
  const auto& output = session.outputs.front();
  HttpRequest request;
  request.method = "POST";
  request.url = target.url;
  request.body = webhook_body(session.key, output);
  const auto now = clock_.now();
  const auto span = model::new_span_id();
  request.headers = webhook_headers(output, target.keys_at(now), now, request.body, span);
  request.timeout = settings_.timeout;
  request.wait_for_body = wait_for_body;
  queue_.begin(session, SteadyClock::now());
  batch_.push_back(
      {std::move(request),
       [this, mailbox = thread_.mailbox(), &session, span](HttpOutcome outcome) {
         // Only the receipt shows it.
         outcome.body = delivered(outcome) ? std::string() : begin_of_answer(outcome.body);
         post(mailbox, [this, &session, outcome, span] { finish(session, outcome, span); });
       }});
}

// The user's next message withdraws a follow-up's output until its delivery has begun. The store
// decides which of the two came first.
void Deliverer::ask_to_begin(Session& session) {
  shard_.outbox().begin_delivery(
      session.key, session.outputs.front(),
      [this, mailbox = thread_.mailbox(), &session](const model::Result<void>& done) {
        post(mailbox, [this, &session, done] { begin(session, done); });
      });
}

void Deliverer::begin(Session& session, const model::Result<void>& allowed) {
  if (allowed) {
    session.outputs.front().withdrawable = false;
  } else if (allowed.error().code == model::Errc::not_found) {
    count_end(DeliveryOutcome::dropped, session.key.endpoint_id);
    session.outputs.pop_front();
  } else {
    return leave_for_a_while(session);
  }
  prepare(session);
}

void Deliverer::trace(const Session& session, const HttpOutcome& outcome,
                      const std::string& span_id) {
  const auto& output = session.outputs.front();
  if (settings_.spans == nullptr || !model::is_sampled(output.input_id)) return;
  const auto target = targets_.of(session.key.endpoint_id);
  auto span = try_span("delivery", output.trace_id, output.input_id, span_id,
                       target ? model::authority_of((*target)->url) : std::string(),
                       session.attempts, outcome, clock_.now());
  span.attributes.emplace_back("http.request.method", "POST");
  span.attributes.emplace_back("conversed.endpoint.id", session.key.endpoint_id);
  span.attributes.emplace_back("conversed.output.id", output.id);
  settings_.spans->add(std::move(span));
}

void Deliverer::finish(Session& session, const HttpOutcome& outcome, const std::string& span_id) {
  // The client stopped or stood still: the outcome is unknown.
  if (outcome.error == HttpError::aborted) return leave_for_a_while(session);
  trace(session, outcome, span_id);
  recent_.add(session.key.endpoint_id, !delivered(outcome), SteadyClock::now());
  const double took = std::chrono::duration<double>(outcome.took).count();
  metrics_.delivery_seconds.observe(took);
  metrics_.count(EndpointCount::delivery_seconds, session.key.endpoint_id, took,
                 organisation_of(session.key.endpoint_id));
  if (!delivered(outcome)) return fail(session, outcome);
  model::fault_point("deliver.after_post");
  const auto& output = session.outputs.front();
  const auto steady = SteadyClock::now();
  works(*session.lane, output);
  queue_.delivered(session, steady);
  count_end(DeliveryOutcome::delivered, session.key.endpoint_id);
  const std::chrono::duration<double> age = now() - output.created_at;
  metrics_.output_age_seconds.observe(std::max(0.0, age.count()));
  mark(session, &outcome);
  queue_.goes_on(session, steady) ? prepare(session) : leave(session);
}

// The webhook has answered the output.
void Deliverer::works(Lane& lane, const model::Output& output) {
  const bool was_paused = health_.works(lane.endpoint_id, now());
  if (lane.failures > 0 || was_paused) log_works(lane, output);
}

void Deliverer::log_works(const Lane& lane, const model::Output& output) {
  log::info("webhook works again", {{"endpointId", lane.endpoint_id},
                                    {"endpoint", name_of(lane.endpoint_id)},
                                    {"traceId", output.trace_id}});
}

// Notes a failed try. True: the Endpoint is paused.
bool Deliverer::note_failure(Lane& lane, const model::Output& output, int status,
                             const std::string& reason) {
  if (lane.failures == 0) {
    log::warn("webhook fails", {{"endpointId", lane.endpoint_id},
                                {"endpoint", name_of(lane.endpoint_id)},
                                {"traceId", output.trace_id},
                                {"reason", reason}});
  }
  if (refuses_output(status)) {
    if (health_.works(lane.endpoint_id, now())) log_works(lane, output);
    return false;
  }
  const auto failed = health_.failed(lane.endpoint_id, status, reason, now());
  if (failed.began) {
    const auto failing =
        std::chrono::duration_cast<std::chrono::seconds>(now() - failed.failing_since);
    log::warn("webhook paused: one try a minute", {{"endpointId", lane.endpoint_id},
                                                   {"endpoint", name_of(lane.endpoint_id)},
                                                   {"traceId", output.trace_id},
                                                   {"failingForSeconds", failing.count()},
                                                   {"reason", reason}});
  }
  return failed.paused;
}

void Deliverer::fail(Session& session, const HttpOutcome& outcome) {
  const auto reason = "the webhook " + describe(outcome);
  const auto steady = SteadyClock::now();
  Lane& lane = *session.lane;
  if (outcome.status == 410) {  // 410 Gone is an answer, not a failure
    works(lane, session.outputs.front());
    queue_.delivered(session, steady);
    return give_up(session, 1, reason, &outcome);
  }
  const bool paused = note_failure(lane, session.outputs.front(), outcome.status, reason);
  queue_.failed(session, steady);
  // Another daemon has the session now, and may have delivered this output.
  if (ownership_.generation_of(session.key) != session.generation) return leave(session);
  const model::Timestamp now = this->now();
  // How long the Endpoint waits.
  const auto wait = paused ? WebhookHealth::probe_interval : wait_of(lane, outcome);
  if (const auto aged = aged_of(session.outputs, health_, lane.endpoint_id, now); aged > 0) {
    give_up(session, queue_.fails(lane) ? aged : 1, reason, &outcome);
  } else {
    const model::Timestamp due = paused ? now + wait : next_try(session, outcome, now);
    count_end(DeliveryOutcome::retried, session.key.endpoint_id);
    log::debug("delivery failed", {{"sessionId", session.key.session_id},
                                   {"endpointId", lane.endpoint_id},
                                   {"outputId", session.outputs.front().id},
                                   {"traceId", session.outputs.front().trace_id},
                                   {"reason", reason},
                                   {"attempts", session.attempts + 1}});
    shard_.outbox().reschedule(session.key, session.outputs.front(), due, session.attempts + 1,
                               marked(session),
                               row_of(session, &outcome, clock_.now() + std::max(due - now, wait)));
    queue_.wake(lane, due);
    leave(session);
  }
  if (!queue_.fails(lane) && !paused) return;
  paused ? queue_.pause(lane, now + wait) : queue_.put_off(lane, now + wait);
  give_up_aged(lane, reason);
}

model::Timestamp Deliverer::next_try(const Session& session, const HttpOutcome& outcome,
                                     model::Timestamp now) {
  const auto last =
      health_.too_old_at(session.key.endpoint_id, session.outputs.front().created_at, now);
  const auto wait =
      backoff(settings_.backoff, session.attempts + 1, outcome.retry_after, random_());
  // The last try is at the very end of `retry_for`.
  return std::max(std::min(now + wait, last), now + settings_.backoff.first);
}

// The time until the next try of a failing Endpoint. One try at a time shows whether it works
// again.
milliseconds Deliverer::wait_of(const Lane& lane, const HttpOutcome& outcome) {
  if (!queue_.fails(lane)) return milliseconds(0);
  auto settings = settings_.backoff;
  settings.max = std::min(settings.max, longest_wait_of_all);
  return backoff(settings, queue_.tries_in_vain(lane), outcome.retry_after, random_());
}

std::string Deliverer::name_of(const std::string& endpoint_id) {
  const auto target = targets_.of(endpoint_id);
  return target ? (*target)->name : std::string();
}

std::string_view Deliverer::organisation_of(const std::string& endpoint_id) {
  const auto target = targets_.of(endpoint_id);
  return target ? (*target)->organisation_id : std::string_view();
}

void Deliverer::count_end(DeliveryOutcome outcome, const std::string& endpoint_id) {
  metrics_.delivery_ended(outcome, endpoint_id, organisation_of(endpoint_id));
}

// Marks the session's first output as done: it needs no further try.
void Deliverer::mark(Session& session, const HttpOutcome* outcome) {
  store::Outbox::Step step;
  const auto& output = session.outputs.front();
  if (outcome != nullptr && session.attempts == 0 && settings_.keeps_receipts) {
    step = store::PlainDelivery{output.input_id, output.seq, clock_.now(), outcome->took,
                                outcome->status};
  } else if (auto row = row_of(session, outcome, std::nullopt,
                               outcome == nullptr ? "the Endpoint has no webhook any more" : "")) {
    step = *std::move(row);
  }
  shard_.outbox().delivered(session.key, output, std::exchange(session.attempts, 0),
                            marked(session), std::move(step));
  session.outputs.pop_front();
}

std::optional<store::ReceiptMark> Deliverer::row_of(const Session& session,
                                                    const HttpOutcome* outcome,
                                                    std::optional<model::Timestamp> next,
                                                    std::string_view ended) const {
  if (!settings_.keeps_receipts) return std::nullopt;
  const auto& output = session.outputs.front();
  model::ReceiptText row;
  row.add("what", "delivery");
  row.add("seq", output.seq);
  if (outcome != nullptr) {
    row.add("try", session.attempts + 1);
    add_attempt(row, *outcome);
    if (!outcome->body.empty()) row.add("answer", outcome->body);
  }
  if (next) row.add("next", model::to_unix_ms(*next));
  if (!ended.empty()) row.add("ended", ended);
  return store::ReceiptMark{output.input_id, std::move(row).finished(), clock_.now()};
}

std::function<void()> Deliverer::marked(Session& session) {
  ++session.marks;
  return [this, mailbox = thread_.mailbox(), &session] {
    post(mailbox, [this, &session] {
      --session.marks;
      queue_.release_if_done(session, now());
    });
  };
}

void Deliverer::give_up(Session& session, std::size_t outputs, const std::string& reason,
                        const HttpOutcome* outcome) {
  for (; outputs > 0; --outputs) {
    const auto& output = session.outputs.front();
    ++session.marks;
    const HttpOutcome* const failed = std::exchange(outcome, nullptr);
    auto row = row_of(session, failed, std::nullopt, reason);
    shard_.outbox().give_up(
        session.key, output, reason, failed != nullptr,
        [this, mailbox = thread_.mailbox(), &session, output,
         reason](const model::Result<void>& done) {
          post(mailbox, [=, this, &session] { given_up(session, output, reason, done); });
        },
        std::move(row));
    session.outputs.pop_front();
  }
  session.more = true;
  leave(session);
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
    const auto aged = aged_of(each.outputs, health_, lane.endpoint_id, now);
    if (aged == 0) continue;
    const auto generation = ownership_.generation_of(each.key);
    give_up(queue_.take(lane, std::move(each), generation), aged, reason, nullptr);
  }
}

void Deliverer::given_up(Session& session, const model::Output& output, const std::string& reason,
                         const model::Result<void>& done) {
  --session.marks;
  if (done) {
    count_end(DeliveryOutcome::dead_letter, session.key.endpoint_id);
    log::warn("output undelivered, dead letter", {{"sessionId", session.key.session_id},
                                                  {"endpointId", session.key.endpoint_id},
                                                  {"endpoint", name_of(session.key.endpoint_id)},
                                                  {"outputId", output.id},
                                                  {"traceId", output.trace_id},
                                                  {"reason", reason}});
  } else if (done.error().code != model::Errc::not_found) {
    queue_.put_off(*session.lane, now() + store_retry);  // tried once more
  }
  queue_.release_if_done(session, now());
}

void Deliverer::leave_for_a_while(Session& session) {
  queue_.put_off(*session.lane, now() + store_retry);
  leave(session);
}

}  // namespace conversed::daemon
