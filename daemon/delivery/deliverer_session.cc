// A session in hand: its outputs are sent one after the other, marked, retried and given up.
#include <algorithm>
#include <memory>
#include <utility>

#include "daemon/delivery/deliverer.h"
#include "daemon/delivery/webhook.h"
#include "daemon/ops/logging.h"
#include "store/runtime/fault_points.h"

namespace conversed::daemon {

using std::chrono::milliseconds;

namespace {

// Only the status matters; the body is read to reuse the connection.
constexpr milliseconds wait_for_body{250};
// Of an Endpoint that fails: it may take outputs of its other sessions.
constexpr milliseconds longest_pause{60'000};
constexpr std::size_t aged_a_page = 64;

bool delivered(const HttpOutcome& outcome) {
  // An answer that is too long has a status, too.
  return outcome.status >= 200 && outcome.status < 300;
}

// How many outputs, from the first on, were created by `latest`.
template <typename Outputs>
std::size_t made_by(const Outputs& outputs, model::Timestamp latest) {
  const auto later = std::ranges::find_if(
      outputs, [&](const model::Output& output) { return output.created_at > latest; });
  return static_cast<std::size_t>(later - outputs.begin());
}

}  // namespace

// Sends the session's first output; drops it if its Endpoint has no webhook.
void Deliverer::prepare(Session& session) {
  while (!session.outputs.empty()) {
    const auto& output = session.outputs.front();
    if (stop_ || !store_.committer().healthy() ||
        ownership_.generation_of(session.key) != session.generation) {
      return leave(session);
    }
    if (output.withdrawable) return ask_to_begin(session);
    const auto target = targets_.of(session.key.endpoint_id);
    if (!target) return leave_for_a_while(session);
    if (!(*target)->url.empty()) return post(session, **target);
    log::info("output dropped, its endpoint has no webhook any more",
              {{"endpointId", session.key.endpoint_id}, {"outputId", output.id}});
    metrics_.deliveries(DeliveryOutcome::dropped).add();
    mark(session);
  }
  queue_.land(session);
  queue_.release_if_done(session, now());
}

void Deliverer::post(Session& session, const WebhookTarget& target) {
  const auto& output = session.outputs.front();
  HttpRequest request;
  request.method = "POST";
  request.url = target.url;
  request.body = webhook_body(session.key, output);
  const auto now = clock_.now();
  request.headers = webhook_headers(output, target.keys_at(now), now, request.body);
  request.timeout = settings_.timeout;
  request.wait_for_body = wait_for_body;
  queue_.begin(session, SteadyClock::now());
  batch_.push_back(
      {std::move(request), [mailbox = thread_.mailbox(), &session](HttpOutcome outcome) {
         outcome.body = {};
         mailbox->put([&](Letters& letters) {
           letters.completions.push_back({&session, std::move(outcome)});
         });
       }});
}

// The user's next message withdraws a follow-up's output until its delivery has begun. The store
// decides which of the two comes first.
void Deliverer::ask_to_begin(Session& session) {
  store_.follow_ups().begin_delivery(
      session.key, session.outputs.front().seq,
      [mailbox = thread_.mailbox(), &session](const model::Result<void>& done) {
        mailbox->put([&](Letters& letters) { letters.begun.push_back({&session, done}); });
      });
}

void Deliverer::begin(const Begun& begun) {
  Session& session = *begun.session;
  if (begun.allowed) {
    session.outputs.front().withdrawable = false;
  } else if (begun.allowed.error().code == model::Errc::not_found) {
    metrics_.deliveries(DeliveryOutcome::dropped).add();
    session.outputs.pop_front();
  } else {
    return leave_for_a_while(session);
  }
  prepare(session);
}

void Deliverer::finish(Session& session, const HttpOutcome& outcome) {
  // The client stopped: the outcome is unknown.
  if (outcome.error == HttpError::aborted) return leave_for_a_while(session);
  metrics_.delivery_seconds.observe(std::chrono::duration<double>(outcome.took).count());
  if (!delivered(outcome)) return fail(session, outcome);
  model::fault_point("deliver.after_post");
  Lane& lane = *session.lane;
  if (lane.failures > 0) {
    log::info("webhook works again", {{"endpointId", lane.endpoint_id}});
  }
  const auto steady = SteadyClock::now();
  queue_.delivered(session, steady);
  metrics_.deliveries(DeliveryOutcome::delivered).add();
  const auto& output = session.outputs.front();
  const std::chrono::duration<double> age = now() - output.created_at;
  metrics_.output_age_seconds.observe(std::max(0.0, age.count()));
  mark(session);
  queue_.goes_on(session, steady) ? prepare(session) : leave(session);
}

void Deliverer::fail(Session& session, const HttpOutcome& outcome) {
  const auto reason = "the webhook " + describe(outcome);
  const auto steady = SteadyClock::now();
  Lane& lane = *session.lane;
  if (outcome.status == 410) {  // an answer, too
    queue_.delivered(session, steady);
    return give_up(session, 1, reason);
  }
  if (lane.failures == 0) {
    log::warn("webhook fails", {{"endpointId", lane.endpoint_id}, {"reason", reason}});
  }
  queue_.failed(session, steady);
  // Another daemon has the session now, and may have delivered this output.
  if (ownership_.generation_of(session.key) != session.generation) return leave(session);
  const model::Timestamp now = this->now();
  if (const auto aged = made_by(session.outputs, now - settings_.retry_for); aged > 0) {
    give_up(session, queue_.fails(lane) ? aged : 1, reason);
  } else {
    const auto last = session.outputs.front().created_at + settings_.retry_for;
    const auto wait =
        backoff(settings_.backoff, session.attempts + 1, outcome.retry_after, random_());
    // The last try is at the end of `retry_for`, not somewhere before it.
    const model::Timestamp due =
        std::max(std::min(now + wait, last), now + settings_.backoff.first);
    metrics_.deliveries(DeliveryOutcome::retried).add();
    log::debug("delivery failed", {{"sessionId", session.key.session_id},
                                   {"outputId", session.outputs.front().id},
                                   {"reason", reason},
                                   {"attempts", session.attempts + 1}});
    store_.committer().reschedule(session.key, due, session.attempts + 1, marked(session));
    queue_.wake(lane, due);
    leave(session);
  }
  if (queue_.fails(lane)) pause(lane, outcome, reason);
}

// One try at a time tells whether it works again.
void Deliverer::pause(Lane& lane, const HttpOutcome& outcome, const std::string& reason) {
  auto settings = settings_.backoff;
  settings.max = std::min(settings.max, longest_pause);
  queue_.put_off(
      lane, now() + backoff(settings, queue_.tries_in_vain(lane), outcome.retry_after, random_()));
  give_up_aged(lane, reason);
}

// The session's first output needs no further try.
void Deliverer::mark(Session& session) {
  store_.committer().delivered(session.key, session.outputs.front(), marked(session));
  session.outputs.pop_front();
  session.attempts = 0;
}

std::function<void()> Deliverer::marked(Session& session) {
  ++session.marks;
  return [mailbox = thread_.mailbox(), &session] {
    mailbox->put([&](Letters& letters) { letters.marked.push_back(&session); });
  };
}

// Gives up the session's first `outputs` outputs.
void Deliverer::give_up(Session& session, std::size_t outputs, const std::string& reason) {
  for (; outputs > 0; --outputs) {
    const auto& output = session.outputs.front();
    ++session.marks;
    store_.outbox().give_up(session.key, output, reason,
                            [mailbox = thread_.mailbox(), &session, id = output.id,
                             trace = output.trace_id, reason](const model::Result<void>& done) {
                              mailbox->put([&](Letters& letters) {
                                letters.given_up.push_back({&session, id, trace, reason, done});
                              });
                            });
    session.outputs.pop_front();
  }
  session.more = true;
  leave(session);
}

// The Endpoint has just failed again: gives up its waiting outputs that are too old.
void Deliverer::give_up_aged(Lane& lane, const std::string& reason) {
  const model::Timestamp now = this->now();
  auto page = store_.outbox().due(lane.endpoint_id, now, aged_a_page, outputs_a_session,
                                  lane.read_up_to ? &*lane.read_up_to : nullptr,
                                  [this](const model::SessionKey& key) { return wants(key); });
  if (!page) return not_read(page.error());
  lane.read_up_to.reset();
  if (page->sessions.size() == aged_a_page) {
    const auto& last = page->sessions.back();
    lane.read_up_to = store::DueDelivery{
        .key = {}, .due_at = last.due_at, .attempts = 0, .outputs = {}, .session = last.session};
    lane.read_again = true;  // the page may hold sessions that are not too old
  }
  for (auto& each : page->sessions) {
    const auto aged = made_by(each.outputs, now - settings_.retry_for);
    if (aged == 0) continue;
    const auto generation = ownership_.generation_of(each.key);
    give_up(queue_.take(lane, std::move(each), generation), aged, reason);
  }
}

void Deliverer::given_up(const GivenUp& letter) {
  Session& session = *letter.session;
  --session.marks;
  if (letter.done) {
    metrics_.deliveries(DeliveryOutcome::dead_letter).add();
    log::warn("output undelivered, dead letter", {{"sessionId", session.key.session_id},
                                                  {"endpointId", session.key.endpoint_id},
                                                  {"outputId", letter.output_id},
                                                  {"traceId", letter.trace_id},
                                                  {"reason", letter.reason}});
  } else if (letter.done.error().code != model::Errc::not_found) {
    queue_.put_off(*session.lane, now() + store_retry);  // tried once more
  }
  queue_.release_if_done(session, now());
}

// The session's other outputs are read again when its turn comes.
void Deliverer::leave(Session& session) {
  session.more = session.more || !session.outputs.empty();
  session.outputs.clear();
  queue_.land(session);
  queue_.release_if_done(session, now());
}

void Deliverer::leave_for_a_while(Session& session) {
  queue_.put_off(*session.lane, now() + store_retry);
  leave(session);
}

}  // namespace conversed::daemon
