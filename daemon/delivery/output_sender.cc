#include "daemon/delivery/output_sender.h"

#include <algorithm>
#include <utility>

#include "daemon/delivery/webhook.h"
#include "daemon/ops/logging.h"
#include "daemon/outbound/attempt.h"
#include "daemon/service/backoff.h"
#include "store/model/trace.h"
#include "store/model/url.h"
#include "store/runtime/fault_points.h"

namespace conversed::daemon {

using std::chrono::milliseconds;

namespace {

// Only the status matters; the body is read to reuse the connection.
constexpr milliseconds wait_for_body{250};
// The longest wait of a failing Endpoint. It is bounded, because the Endpoint may accept outputs of
// its other sessions.
constexpr milliseconds longest_wait_of_all{60'000};

bool delivered(const HttpOutcome& outcome) {
  // An answer that is too long also has a status.
  return outcome.status >= 200 && outcome.status < 300;
}

// The webhook works, and refuses this output.
bool refuses_output(int status) {
  return status == 400 || status == 413 || status == 415 || status == 422;
}

}  // namespace

OutputSender::OutputSender(const DelivererSettings& settings, Parts parts, ErrandBox errands,
                           std::function<void(Lane&, const std::string&)> endpoint_failed)
    : settings_(settings),
      parts_(parts),
      errands_(std::move(errands)),
      endpoint_failed_(std::move(endpoint_failed)),
      targets_(parts.assets, settings.secret_overlap) {}

void OutputSender::prepare(Session& session) {
  while (!session.outputs.empty()) {
    const auto& output = session.outputs.front();
    if (stop_ || !parts_.shard.committer().healthy() ||
        parts_.ownership.generation_of(session.key) != session.generation) {
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
  leave(session);
}

void OutputSender::leave(Session& session) {
  const bool reads_on = session.more || !session.outputs.empty();
  if (reads_on && session.marks > 0) parts_.shard.committer().hurry();
  parts_.queue.leave(session, now());
}

void OutputSender::send(Session& session, const WebhookTarget& target) {
  const auto& output = session.outputs.front();
  HttpRequest request;
  request.method = "POST";
  request.url = target.url;
  request.body = webhook_body(session.key, output);
  const auto now = parts_.clock.now();
  const auto span = model::new_span_id();
  request.headers = webhook_headers(output, target.keys_at(now), now, request.body, span);
  request.timeout = settings_.timeout;
  request.wait_for_body = wait_for_body;
  parts_.queue.begin(session, SteadyClock::now());
  batch_.push_back(
      {std::move(request), [this, mailbox = errands_, &session, span](HttpOutcome outcome) {
         // Only the receipt shows it.
         outcome.body = delivered(outcome) ? std::string() : begin_of_answer(outcome.body);
         post(mailbox, [this, &session, outcome, span] { finish(session, outcome, span); });
       }});
}

// The user's next message withdraws a follow-up's output until its delivery has begun. The store
// decides which of the two came first.
void OutputSender::ask_to_begin(Session& session) {
  parts_.shard.outbox().begin_delivery(
      session.key, session.outputs.front(),
      [this, mailbox = errands_, &session](const model::Result<void>& done) {
        post(mailbox, [this, &session, done] { begin(session, done); });
      });
}

void OutputSender::begin(Session& session, const model::Result<void>& allowed) {
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

void OutputSender::trace(const Session& session, const HttpOutcome& outcome,
                         const std::string& span_id) {
  const auto& output = session.outputs.front();
  if (settings_.spans == nullptr || !model::is_sampled(output.input_id)) return;
  const auto target = targets_.of(session.key.endpoint_id);
  auto span = try_span("delivery", output.trace_id, output.input_id, span_id,
                       target ? model::authority_of((*target)->url) : std::string(),
                       session.attempts, outcome, parts_.clock.now());
  span.attributes.emplace_back("http.request.method", "POST");
  span.attributes.emplace_back("conversed.endpoint.id", session.key.endpoint_id);
  span.attributes.emplace_back("conversed.output.id", output.id);
  settings_.spans->add(std::move(span));
}

void OutputSender::finish(Session& session, const HttpOutcome& outcome,
                          const std::string& span_id) {
  // The client stopped or stood still: the outcome is unknown.
  if (outcome.error == HttpError::aborted) return leave_for_a_while(session);
  trace(session, outcome, span_id);
  recent_.add(session.key.endpoint_id, !delivered(outcome), SteadyClock::now());
  const double took = std::chrono::duration<double>(outcome.took).count();
  parts_.metrics.delivery_seconds.observe(took);
  parts_.metrics.count(EndpointCount::delivery_seconds, session.key.endpoint_id, took,
                       organisation_of(session.key.endpoint_id));
  if (!delivered(outcome)) return fail(session, outcome);
  model::fault_point("deliver.after_post");
  const auto& output = session.outputs.front();
  const auto steady = SteadyClock::now();
  works(*session.lane, output);
  parts_.queue.delivered(session, steady);
  count_end(DeliveryOutcome::delivered, session.key.endpoint_id);
  const std::chrono::duration<double> age = now() - output.created_at;
  parts_.metrics.output_age_seconds.observe(std::max(0.0, age.count()));
  mark(session, &outcome);
  parts_.queue.goes_on(session, steady) ? prepare(session) : leave(session);
}

// The webhook has answered the output.
void OutputSender::works(Lane& lane, const model::Output& output) {
  const bool was_paused = parts_.health.works(lane.endpoint_id, now());
  if (lane.failures > 0 || was_paused) log_works(lane, output);
}

void OutputSender::log_works(const Lane& lane, const model::Output& output) {
  log::info("webhook works again", {{"endpointId", lane.endpoint_id},
                                    {"endpoint", name_of(lane.endpoint_id)},
                                    {"traceId", output.trace_id}});
}

// Notes a failed try. True: the Endpoint is paused.
bool OutputSender::note_failure(Lane& lane, const model::Output& output, int status,
                                const std::string& reason) {
  if (lane.failures == 0) {
    log::warn("webhook fails", {{"endpointId", lane.endpoint_id},
                                {"endpoint", name_of(lane.endpoint_id)},
                                {"traceId", output.trace_id},
                                {"reason", reason}});
  }
  if (refuses_output(status)) {
    if (parts_.health.works(lane.endpoint_id, now())) log_works(lane, output);
    return false;
  }
  const auto failed = parts_.health.failed(lane.endpoint_id, status, reason, now());
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

void OutputSender::fail(Session& session, const HttpOutcome& outcome) {
  const auto reason = "the webhook " + describe(outcome);
  const auto steady = SteadyClock::now();
  Lane& lane = *session.lane;
  if (outcome.status == 410) {  // 410 Gone is an answer, not a failure
    works(lane, session.outputs.front());
    parts_.queue.delivered(session, steady);
    return give_up(session, 1, reason, &outcome);
  }
  const bool paused = note_failure(lane, session.outputs.front(), outcome.status, reason);
  parts_.queue.failed(session, steady);
  // Another daemon has the session now, and may have delivered this output.
  if (parts_.ownership.generation_of(session.key) != session.generation) return leave(session);
  const model::Timestamp now = this->now();
  // How long the Endpoint waits.
  const auto wait = paused ? WebhookHealth::probe_interval : wait_of(lane, outcome);
  if (const auto aged = parts_.health.too_old_of(lane.endpoint_id, session.outputs, now);
      aged > 0) {
    give_up(session, parts_.queue.fails(lane) ? aged : 1, reason, &outcome);
  } else {
    const model::Timestamp due = paused ? now + wait : next_try(session, outcome, now);
    count_end(DeliveryOutcome::retried, session.key.endpoint_id);
    log::debug("delivery failed", {{"sessionId", session.key.session_id},
                                   {"endpointId", lane.endpoint_id},
                                   {"outputId", session.outputs.front().id},
                                   {"traceId", session.outputs.front().trace_id},
                                   {"reason", reason},
                                   {"attempts", session.attempts + 1}});
    parts_.shard.outbox().reschedule(
        session.key, session.outputs.front(), due, session.attempts + 1, marked(session),
        row_of(session, &outcome, parts_.clock.now() + std::max(due - now, wait)));
    parts_.queue.wake(lane, due);
    parts_.queue.leave(session, now);  // nothing of the session is due soon
  }
  if (!parts_.queue.fails(lane) && !paused) return;
  paused ? parts_.queue.pause(lane, now + wait) : parts_.queue.put_off(lane, now + wait);
  endpoint_failed_(lane, reason);
}

model::Timestamp OutputSender::next_try(const Session& session, const HttpOutcome& outcome,
                                        model::Timestamp now) {
  const auto last =
      parts_.health.too_old_at(session.key.endpoint_id, session.outputs.front().created_at, now);
  const auto wait =
      backoff(settings_.backoff, session.attempts + 1, outcome.retry_after, random_());
  // The last try is at the very end of `retry_for`.
  return std::max(std::min(now + wait, last), now + settings_.backoff.first);
}

// The time until the next try of a failing Endpoint. One try at a time shows whether it works
// again.
milliseconds OutputSender::wait_of(const Lane& lane, const HttpOutcome& outcome) {
  if (!parts_.queue.fails(lane)) return milliseconds(0);
  auto settings = settings_.backoff;
  settings.max = std::min(settings.max, longest_wait_of_all);
  return backoff(settings, parts_.queue.tries_in_vain(lane), outcome.retry_after, random_());
}

std::string OutputSender::name_of(const std::string& endpoint_id) {
  const auto target = targets_.of(endpoint_id);
  return target ? (*target)->name : std::string();
}

std::string_view OutputSender::organisation_of(const std::string& endpoint_id) {
  const auto target = targets_.of(endpoint_id);
  return target ? (*target)->organisation_id : std::string_view();
}

void OutputSender::count_end(DeliveryOutcome outcome, const std::string& endpoint_id) {
  parts_.metrics.delivery_ended(outcome, endpoint_id, organisation_of(endpoint_id));
}

// Marks the session's first output as done: it needs no further try.
void OutputSender::mark(Session& session, const HttpOutcome* outcome) {
  store::Outbox::Step step;
  const auto& output = session.outputs.front();
  if (outcome != nullptr && session.attempts == 0 && settings_.keeps_receipts) {
    step = store::PlainDelivery{output.input_id, output.seq, parts_.clock.now(), outcome->took,
                                outcome->status};
  } else if (auto row = row_of(session, outcome, std::nullopt,
                               outcome == nullptr ? "the Endpoint has no webhook any more" : "")) {
    step = *std::move(row);
  }
  parts_.shard.outbox().delivered(session.key, output, std::exchange(session.attempts, 0),
                                  marked(session), std::move(step));
  session.outputs.pop_front();
}

std::optional<store::ReceiptMark> OutputSender::row_of(const Session& session,
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
  return store::ReceiptMark{output.input_id, std::move(row).finished(), parts_.clock.now()};
}

std::function<void()> OutputSender::marked(Session& session) {
  ++session.marks;
  return [this, mailbox = errands_, &session] {
    post(mailbox, [this, &session] {
      --session.marks;
      parts_.queue.release_if_done(session, now());
    });
  };
}

void OutputSender::give_up(Session& session, std::size_t outputs, const std::string& reason,
                           const HttpOutcome* outcome) {
  for (; outputs > 0; --outputs) {
    const auto& output = session.outputs.front();
    ++session.marks;
    const HttpOutcome* const failed = std::exchange(outcome, nullptr);
    auto row = row_of(session, failed, std::nullopt, reason);
    parts_.shard.outbox().give_up(
        session.key, output, reason, failed != nullptr,
        [this, mailbox = errands_, &session, output, reason](const model::Result<void>& done) {
          post(mailbox, [=, this, &session] { given_up(session, output, reason, done); });
        },
        std::move(row));
    session.outputs.pop_front();
  }
  session.more = true;
  leave(session);
}

void OutputSender::given_up(Session& session, const model::Output& output,
                            const std::string& reason, const model::Result<void>& done) {
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
    parts_.queue.put_off(*session.lane, now() + store_retry);  // tried once more
  }
  parts_.queue.release_if_done(session, now());
}

void OutputSender::leave_for_a_while(Session& session) {
  parts_.queue.put_off(*session.lane, now() + store_retry);
  leave(session);
}

}  // namespace conversed::daemon
