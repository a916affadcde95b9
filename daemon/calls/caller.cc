#include "daemon/calls/caller.h"

#include <algorithm>
#include <utility>

#include "daemon/calls/call_request.h"
#include "daemon/ops/logging.h"
#include "daemon/outbound/attempt.h"
#include "store/commit/call_target.h"
#include "store/model/trace.h"
#include "store/runtime/fault_points.h"

namespace conversed::daemon {
namespace {

using model::Errc;
using model::Timestamp;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// The longest sleep between two looks at the clock, which may jump.
constexpr milliseconds max_sleep{5'000};
constexpr milliseconds store_retry{1'000};
constexpr milliseconds unhealthy_sleep{100};
constexpr std::size_t lanes_a_page = 256;
constexpr std::size_t others_a_page = 64;  // calls of other daemons that a page may hold
// The most calls of a lane in one turn, so that lanes share an upstream from the start.
constexpr std::size_t calls_a_turn = 4;
// The lanes that are read before the thread takes its letters.
constexpr int turns_at_once = 64;
constexpr int max_retries = 10;  // even if a call asks for more
// Between tries to append a result while the log or the store fails.
constexpr BackoffSettings append_backoff{
    .first = milliseconds(50), .max = milliseconds(2'000), .max_asked = milliseconds(0)};

}  // namespace

Caller::Caller(CallerSettings settings, store::Store& store, store::Shard& shard, HttpClient& http,
               AppendEvent append, const model::Clock& clock, Metrics& metrics,
               const Ownership& ownership)
    : settings_(settings),
      store_(store),
      shard_(shard),
      http_(http),
      append_(std::move(append)),
      clock_(clock),
      timer_clock_(settings_.timer_clock == nullptr ? clock : *settings_.timer_clock),
      metrics_(metrics),
      ownership_(ownership),
      queue_(settings.limits),
      looks_(settings.look_interval),
      searches_(1, settings.limits.searches) {}

void Caller::stop() {
  thread_.stop();
  searches_.stop();
}

std::optional<model::Timestamp> Caller::calling_since(const std::string& id) {
  return ask(thread_.mailbox(), [this, id]() -> std::optional<model::Timestamp> {
    if (!queue_.has(id) || !queue_.at(id).under_way) return std::nullopt;
    return by_wall_clock(clock_, queue_.at(id).began);
  });
}

void Caller::offer(std::string project_id, std::string target) {
  post(thread_.mailbox(), [this, project_id = std::move(project_id), target = std::move(target)] {
    wake(project_id, target, now());
  });
}

void Caller::run() {
  for (;;) {
    append_again();
    bool quiet = false;
    if (shard_.committer().healthy()) {
      look();
      send_ready();
      quiet = queue_.quiet() && !looking_;
    }
    thread_.mailbox()->set_quiet(quiet);
    const auto errands = thread_.take(next_look());
    if (errands.stop) return;
    for (const auto& work : errands.work) work();
  }
}

SteadyClock::time_point Caller::next_look() const {
  const auto steady = SteadyClock::now();
  auto until = steady + max_sleep;
  if (!unappended_.empty()) until = std::min(until, std::max(steady, append_after_));
  if (!shard_.committer().healthy()) return std::min(until, steady + unhealthy_sleep);
  if (looking_ || read_on_) return std::min(until, std::max(steady, read_after_));
  until = std::min(until, std::max(steady, next_look_));
  if (const auto due = queue_.next_due()) {
    const auto left = std::clamp<milliseconds>(*due - now(), milliseconds(0), max_sleep);
    until = std::min(until, std::max(steady + left, read_after_));
  }
  return until;
}

void Caller::wake(const std::string& project_id, const std::string& target, Timestamp due) {
  auto* lane = queue_.find_lane(project_id, target);
  if (lane == nullptr) {
    lane = queue_.add_lane({organization_of(project_id), project_id, target},
                           upstream_of(target, store_.assets()));
  }
  if (lane != nullptr) queue_.wake(*lane, due);
}

// A project that can't be read is its own share.
std::string Caller::organization_of(const std::string& project_id) const {
  const auto project = store_.assets().project(project_id);
  return project ? project->organisation_id : project_id;
}

void Caller::look_again() {
  looking_ = true;
  looked_up_to_ = {};
  looked_up_organization_.clear();
}

// Reads the next page of lanes.
void Caller::look() {
  const auto steady = SteadyClock::now();
  if (steady < read_after_) return;
  if (!clock_checked_) {
    const auto checked =
        shard_.calls().bring_forward(now() + longest_wait(settings_.backoff), now());
    if (!checked) return not_read(checked.error());
    clock_checked_ = true;
  }
  if (!looking_ && (steady >= next_look_ || queue_.wants_look())) look_again();
  if (!looking_) return;
  for (std::size_t i = 0; i < lanes_a_page; ++i) {
    std::optional<std::string> target = looked_up_to_.target;
    if (queue_.is_full(looked_up_organization_, looked_up_to_.project_id)) target.reset();
    auto lane = shard_.calls().lane_behind(looked_up_to_.project_id, target);
    if (!lane) return not_read(lane.error());
    if (!*lane) {
      looking_ = false;
      next_look_ = looks_.next(steady);
      return;
    }
    if (lane->value().project_id != looked_up_to_.project_id) {
      looked_up_organization_ = organization_of(lane->value().project_id);
    }
    looked_up_to_ = std::move(**lane);
    wake(looked_up_to_.project_id, looked_up_to_.target, looked_up_to_.due_at);
  }
}

void Caller::not_read(const model::Error& error) {
  log::warn("calls can't be read", {{"error", error.message}});
  read_after_ = SteadyClock::now() + store_retry;
}

void Caller::send_ready() {
  read_on_ = false;
  // While the log takes no results, no further call begins: no session could go on.
  if (appends_failed_ > 0 || SteadyClock::now() < read_after_) return;
  for (int turns = 0; CallQueue::Lane* lane = queue_.next(now()); ++turns) {
    read_on_ = turns == turns_at_once;
    if (read_on_ || !begin_calls(*lane)) break;
  }
  http_.send(std::exchange(batch_, {}));
}

// Reads the lane's next due calls and begins as many as there is room for. False: the store fails.
bool Caller::begin_calls(CallQueue::Lane& lane) {
  const auto most = std::min(queue_.room(lane), calls_a_turn);
  // The page also has the calls in hand.
  const std::size_t limit = most + lane.in_hand + (ownership_.is_shared() ? others_a_page : 0);
  auto page = shard_.calls().due(lane.project_id, lane.target, now(), limit,
                                 lane.read_up_to ? &*lane.read_up_to : nullptr);
  if (!page) {
    not_read(page.error());
    return false;
  }
  const std::size_t before = lane.in_hand;
  for (auto& each : page->calls) {
    if (lane.in_hand == before + most) return true;
    if (!queue_.has(each.id) && ownership_.owns(each.session) && !begin(lane, each)) return false;
    lane.read_up_to = std::move(each);
  }
  if (page->calls.size() < limit) queue_.read_all(lane, page->next);
  return true;
}

// False: the store fails.
bool Caller::begin(CallQueue::Lane& lane, const store::Calls::Due& due) {
  auto found = shard_.calls().find(due.id);
  if (!found && found.error().code != Errc::internal) {
    not_read(found.error());
    return false;
  }
  if (!found) {
    log::error("a call can't be read and is not made",
               {{"id", due.id}, {"error", found.error().message}});
    store::Calls::Found damaged;
    damaged.call.id = due.id;
    queue_.landed(queue_.take(lane, std::move(damaged)));
    mark_appended(due.id, std::nullopt);
    return true;
  }
  if (!*found || (*found)->call.due_at) return true;  // its session was reset meanwhile
  send(queue_.take(lane, std::move(**found)));
  return queue_.has(due.id);
}

// Whether the organisation has model tokens left in this month.
model::Result<bool> Caller::quota_left(const std::string& project_id) const {
  if (settings_.model_tokens_per_month == 0) return true;
  auto project = store_.assets().project(project_id);
  if (!project) return model::fail(project.error());
  auto used = store_.usage().used(project->organisation_id, store::model_tokens_counter,
                                  store::month_of(clock_.now()));
  if (!used) return model::fail(used.error());
  return static_cast<std::uint64_t>(std::max<std::int64_t>(*used, 0)) <
         settings_.model_tokens_per_month;
}

// The search thread uses only the store, the settings and the mailbox.
void Caller::search(Call& call) {
  const std::string id = call.pending.id;
  const bool posted =
      searches_.post([this, mailbox = thread_.mailbox(), id,
                      project = call.pending.session.project_id, query = *call.pending.search] {
        const auto begun = SteadyClock::now();
        auto hits = store_.knowledge().search(project, query, settings_.search_timeout);
        const auto took = SteadyClock::now() - begun;
        post(mailbox, [=, this, hits = std::move(hits)] { finish(queue_.at(id), hits, took); });
      });
  if (!posted) leave_for_a_while(call);
}

void Caller::finish(Call& call, const model::Result<std::vector<store::KnowledgeHit>>& hits,
                    SteadyClock::duration took) {
  const std::string& id = call.pending.id;
  queue_.landed(call);
  metrics_.search_seconds.observe(std::chrono::duration<double>(took).count());
  HttpOutcome traced;
  traced.took = std::chrono::duration_cast<std::chrono::microseconds>(took);
  const Try made{.took = took};
  if (hits) {
    trace(call, traced, model::new_span_id());
    return settle(call, search_result(id, *hits, settings_.max_response_bytes), made);
  }
  auto failure = search_failure(id, hits.error().code);
  trace(call, traced, model::new_span_id(), failure ? failure->error_code : "search_failed");
  if (failure) return settle(call, std::move(*failure), made);
  if (++call.attempts >= settings_.max_search_tries) {
    log::warn("a search in knowledge is given up", {{"sessionId", call.pending.session.session_id},
                                                    {"traceId", call.pending.trace_id},
                                                    {"tries", call.attempts},
                                                    {"error", hits.error().message}});
    return settle(call, failed_call(id, "search_failed", "knowledge can't be searched"), made);
  }
  put_off(call, made);
}

void Caller::run_script(Call& call) {
  const std::string id = call.pending.id;
  if (settings_.code == nullptr) {
    return settle(call, failed_call(id, "code_off", "scripts are off; an operator sets flows.code"),
                  {});
  }
  const bool posted = settings_.code->run(
      *call.pending.code, settings_.max_response_bytes,
      [this, mailbox = thread_.mailbox(), id, begun = SteadyClock::now()](CodeOutcome outcome) {
        const auto took = SteadyClock::now() - begun;
        post(mailbox,
             [=, this, outcome = std::move(outcome)] { finish(queue_.at(id), outcome, took); });
      });
  if (!posted) leave_for_a_while(call);
}

void Caller::finish(Call& call, const CodeOutcome& outcome, SteadyClock::duration took) {
  queue_.landed(call);
  model::fault_point("call.after_response");
  HttpOutcome traced;
  traced.took = std::chrono::duration_cast<std::chrono::microseconds>(took);
  trace(call, traced, model::new_span_id(), outcome.error_code);
  const Try made{.took = took};
  if (outcome.error_code == "sandbox_failed" && ++call.attempts < settings_.max_script_tries) {
    log::warn("the sandbox of scripts fails", {{"sessionId", call.pending.session.session_id},
                                               {"traceId", call.pending.trace_id},
                                               {"error", outcome.error_message}});
    return put_off(call, made);
  }
  settle(call, code_result(call.pending.id, outcome), made);
}

void Caller::send(Call& call) {
  if (call.pending.search) return search(call);
  if (call.pending.code) return run_script(call);
  const auto& http = *call.pending.http;
  const std::string& id = call.pending.id;
  std::optional<store::ConnectionSecrets> connection;
  if (!http.connection_id.empty()) {
    auto found = store_.assets().connection_secrets(http.connection_id);
    if (!found && found.error().code != Errc::not_found && found.error().code != Errc::internal) {
      return leave_for_a_while(call);
    }
    if (!found || found->project_id != call.pending.session.project_id) {
      return settle(call,
                    failed_call(id, "connection_deleted", "the Connection does not exist any more"),
                    {});
    }
    connection = std::move(*found);
  }
  if (http.to_model) {
    const auto left = quota_left(call.pending.session.project_id);
    if (!left) return leave_for_a_while(call);
    if (!*left) {
      return settle(call,
                    failed_call(id, "quota_exhausted",
                                "the plan's quota of language models' tokens is used up for "
                                "this month"),
                    {});
    }
  }
  const auto span = model::new_span_id();
  auto request = call_request(call.pending, connection ? &*connection : nullptr,
                              settings_.max_response_bytes, span);
  if (!request) return settle(call, std::move(request.error()), {});
  batch_.push_back(
      {std::move(*request), [this, mailbox = thread_.mailbox(), id, span](HttpOutcome outcome) {
         post(mailbox, [this, id, span, outcome = std::move(outcome)] {
           finish(queue_.at(id), outcome, span);
         });
       }});
}

void Caller::trace(const Call& call, const HttpOutcome& outcome, std::string span_id,
                   std::string error) {
  const auto& pending = call.pending;
  if (settings_.spans == nullptr || !model::is_sampled(pending.id)) return;
  auto span = try_span(pending.search ? "knowledge search"
                       : pending.code ? "script"
                                      : "call",
                       pending.trace_id, store::input_of_call(pending.id), std::move(span_id),
                       store::shown_target(pending), call.attempts, outcome, clock_.now());
  if (!error.empty()) span.error = std::move(error);
  if (pending.http) span.attributes.emplace_back("http.request.method", pending.http->method);
  span.attributes.emplace_back("conversed.call.id", pending.id);
  settings_.spans->add(std::move(span));
}

void Caller::finish(Call& call, const HttpOutcome& outcome, const std::string& span_id) {
  // The client stopped before this Service, or stood still: the outcome is unknown.
  if (outcome.error == HttpError::aborted) return leave_for_a_while(call);
  trace(call, outcome, span_id);
  queue_.landed(call);
  model::fault_point("call.after_response");
  metrics_.call_seconds.observe(std::chrono::duration<double>(outcome.took).count());
  ++call.attempts;
  const int retries = std::clamp(call.pending.http->retries, 0, max_retries);
  if (worth_retrying(outcome) && call.attempts <= retries) {
    metrics_.calls(CallOutcome::retried).add();
    return put_off(call, {.outcome = &outcome});
  }
  auto result = call_result(call.pending.id, outcome);
  if (call.pending.http->to_model) {
    const auto used = model_usage(result.body);
    result.model_tokens = used.prompt + used.completion;
    metrics_.model_prompt_tokens.add(static_cast<std::uint64_t>(used.prompt));
    metrics_.model_completion_tokens.add(static_cast<std::uint64_t>(used.completion));
  }
  settle(call, std::move(result), {.outcome = &outcome});
}

// The callback of a mark. Without `due` the call has ended.
std::function<void()> Caller::marked(const std::string& id, std::optional<Timestamp> due) {
  return [this, mailbox = thread_.mailbox(), id, due] {
    post(mailbox, [=, this] { queue_.release(id, due); });
  };
}

std::optional<store::ReceiptMark> Caller::row_of(const Call& call, const Try& made,
                                                 std::string_view error,
                                                 std::optional<Timestamp> next) const {
  if (!settings_.keeps_receipts) return std::nullopt;
  model::ReceiptText row;
  row.add("what", "call");
  row.add("id", call.pending.id);
  row.add("to", store::shown_target(call.pending));
  if (made.outcome != nullptr) {
    row.add("try", call.attempts);
    add_attempt(row, *made.outcome);
    if (made.outcome->status != 0 && made.outcome->error == HttpError::too_large) {
      row.add("error", "its answer is too large");
    }
  } else {
    row.add("us", std::chrono::duration_cast<std::chrono::microseconds>(made.took).count());
    if (!error.empty()) row.add("error", error);
  }
  if (next) row.add("next", model::to_unix_ms(*next));
  return store::ReceiptMark{store::input_of_call(call.pending.id), std::move(row).finished(),
                            clock_.now()};
}

// The next try is read from the store when it is due.
void Caller::put_off(Call& call, const Try& made) {
  const std::string& id = call.pending.id;
  const int attempts = call.attempts;
  const auto asked = made.outcome == nullptr ? std::nullopt : made.outcome->retry_after;
  const auto wait = backoff(settings_.backoff, attempts, asked, random_());
  const auto due = now() + wait;
  shard_.calls().put_off(
      id, due, attempts, marked(id, due),
      row_of(call, made, call.pending.code ? "the sandbox failed" : "the search failed",
             clock_.now() + wait));
}

// Puts the call off in memory only: the row does not change.
void Caller::leave_for_a_while(Call& call) {
  read_after_ = SteadyClock::now() + store_retry;
  queue_.release(std::string(call.pending.id), now() + store_retry);
}

void Caller::settle(Call& call, model::CallResult result, const Try& made) {
  queue_.landed(call);
  call.row = row_of(call, made, result.error_code);
  metrics_.calls(result.error_code.empty() ? CallOutcome::answered : CallOutcome::failed).add();
  log::debug("call ended", {{"sessionId", call.pending.session.session_id},
                            {"traceId", call.pending.trace_id},
                            {"status", result.status},
                            {"error", result.error_code}});
  call.result = result_event(call.pending, std::move(result), clock_.now());
  append(call);
}

// A result whose session is gone is not appended: it would keep data of a user who was erased
// meanwhile. If the session goes after this check, the claim still stops the result.
void Caller::append(Call& call) {
  const auto waits = shard_.calls().waits(call.pending.id);
  if (waits && !*waits) {
    appends_failed_ = 0;  // this may have been the only result that tried the log
    return marked(call.pending.id, std::nullopt)();
  }
  append_(*call.result, [this, mailbox = thread_.mailbox(),
                         id = call.pending.id](const model::Result<queue::Appended>& done) {
    const auto error = done ? std::nullopt : std::optional(done.error());
    post(mailbox, [this, id, error] { appended(id, error); });
  });
}

void Caller::append_again() {
  if (unappended_.empty() || SteadyClock::now() < append_after_) return;
  for (const auto& id : std::exchange(unappended_, {})) append(queue_.at(id));
}

void Caller::appended(const std::string& id, const std::optional<model::Error>& error) {
  auto& call = queue_.at(id);
  if (!error) {
    appends_failed_ = 0;
    call.result.reset();
    return mark_appended(id, std::exchange(call.row, std::nullopt));
  }
  if (error->code == Errc::too_large && call.result->result->error_code != "too_large") {
    auto failed = failed_call(id, "too_large",
                              call.pending.code ? "the script's result is too large"
                                                : "the upstream's answer is too large");
    failed.model_tokens = call.result->result->model_tokens;
    call.result->result = std::move(failed);
    if (call.row) {
      model::ReceiptText more;
      more.add("error", "its result is too large for the log");
      call.row->body += std::move(more).finished();
    }
    return append(call);
  }
  if (unappended_.empty()) {
    log::warn("call results can't be appended", {{"error", error->message}});
    append_after_ =
        SteadyClock::now() + backoff(append_backoff, ++appends_failed_, std::nullopt, random_());
  }
  unappended_.push_back(id);
}

void Caller::mark_appended(const std::string& id, std::optional<store::ReceiptMark> row) {
  shard_.calls().appended(id, marked(id, std::nullopt), std::move(row));
}

}  // namespace conversed::daemon
