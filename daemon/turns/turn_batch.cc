#include "daemon/turns/turn_batch.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "daemon/turns/project_library.h"
#include "daemon/turns/recovery.h"
#include "daemon/turns/turn_batch_builder.h"
#include "daemon/turns/turn_clock.h"
#include "flows/turn/time_outs.h"
#include "store/commit/call_target.h"
#include "store/commit/usage.h"
#include "store/conversation/answers.h"
#include "store/conversation/dead_letters.h"
#include "store/model/event_origin.h"
#include "store/model/ids.h"
#include "store/model/trace.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/planted_faults.h"

namespace conversed::daemon {
namespace {

using model::Claim;
using model::Errc;
using model::Event;
using model::EventType;
using model::fail;
using model::Result;

store::InboxEvent parts_of(const queue::Record& record) {
  return {record.id, record.type, model::trace_id_of(record.trace_id), record.value};
}

}  // namespace

model::Execution begun_by(const Event& event) {
  model::Execution execution;
  execution.input_id = event.id;
  execution.source = event.type;
  execution.trace_id = event.trace_id;
  execution.keyed = event.claim && event.claim->kind == Claim::Kind::keyed_event;
  execution.answer_until = event.answer_until;
  return execution;
}

Result<std::optional<TurnBatch>> TurnBatchBuilder::build() {
  if (auto loaded = load(); !loaded) return fail(loaded.error());
  // An inbox that waited goes first, and again behind a record that ended the execution.
  if (auto drained = drain(); !drained) return fail(drained.error());
  for (const auto& record : input_.records) {
    if (again_) return std::nullopt;
    if (auto taken = take(record); !taken) return fail(taken.error());
    if (again_) return std::nullopt;
    if (auto drained = drain(); !drained) return fail(drained.error());
  }
  if (again_) return std::nullopt;
  close();
  return std::move(batch_);
}

Result<void> TurnBatchBuilder::load() {
  auto loaded = context_.store.sessions().load_with_profile(input_.key);
  if (!loaded) return fail(loaded.error());
  if (loaded->session) {
    session_ = std::move(*loaded->session);
  } else {
    session_.key = input_.key;
  }
  profile_ = std::move(loaded->profile);
  time_outs_ = flows::time_outs_of(session_);
  damage_ = std::move(loaded->damage);
  execution_lost_ = loaded->execution_lost;
  batch_.commit.key = input_.key;
  batch_.commit.expected_version = session_.version;
  batch_.commit.profile.read_version = profile_.version;
  if (session_.inbox_size > 0) {
    auto inbox = context_.store.sessions().inbox(input_.key, context_.max_drained);
    if (!inbox) return fail(inbox.error());
    stored_inbox_ = std::move(*inbox);
  }
  return {};
}

Result<bool> TurnBatchBuilder::has_had_effects(const model::Position& at) const {
  if (model::planted("no_duplicate_check")) return false;
  // Nothing yet, or an operator has opened a newer epoch: whatever is in it is new.
  if (session_.position.epoch < at.epoch) return false;
  auto after = queue::is_after(at, session_.position);
  if (!after) return fail(after.error());
  return !*after;
}

Result<void> TurnBatchBuilder::take(const queue::LogRecord& record) {
  auto seen = has_had_effects(record.position);
  if (!seen) return fail(seen.error());
  if (*seen) return {};
  const auto so_far = session_.version == 0 && !batch_.changes ? Traces::none : Traces::some;
  session_.position = record.position;
  batch_.changes = true;
  return take_new(record, so_far);
}

Result<void> TurnBatchBuilder::take_new(const queue::LogRecord& logged, Traces so_far) {
  const queue::Record& record = logged.record;
  if (!has_names(record)) {
    bury_unreadable(parts_of(record), "its id or type is no UTF-8, or longer than 64 bytes");
    return {};
  }
  if (input_.key.endpoint_id.empty()) {
    bury_unreadable(parts_of(record), "its key is no session's");
    return {};
  }
  auto event =
      model::decode_event(record.key, record.id, record.type, record.trace_id, record.value);
  if (!event) {
    bury_unreadable(parts_of(record), event.error().message);
    return {};
  }
  if (event->type == EventType::job) {  // the worker has taken those that are in their place
    bury_unreadable(parts_of(record), "event " + event->id + ": a job is no conversation");
    return {};
  }
  if (is_of_the_future(*event) && !model::is_own(record.value)) {
    bury_unreadable(parts_of(record),
                    "event " + event->id + ": its member at is more than a day ahead");
    return {};
  }
  bring_to_now(*event);
  // Whether its claim is there can't be told, but that nobody will take it: it goes with the rest.
  if (execution_lost_ && !is_input(event->type) && !is_notify(event->type))
    return bury_damaged(*event, parts_of(record));
  auto claimed = holds_claim(*event);
  if (!claimed) return fail(claimed.error());
  if (!*claimed) {  // it has had its effects, or what it answers is gone
    // If the session is, too, it is not made again for the sake of a position.
    if (so_far == Traces::none) batch_.changes = false;
    return {};
  }
  if (is_too_late(*event)) return {};
  count_use(*event);
  if (event->type == EventType::user_message) {
    cancel_follow_ups();
    abandon_follow_up();
  }
  // What is only said waits for no execution.
  const bool waits = is_input(event->type) ? must_wait() : is_notify(event->type) && !may_start();
  if (waits) {
    if (auto refused = input_.refused.find(event->id); refused != input_.refused.end()) {
      return bury_waiting(*event, parts_of(record), refused->second);
    }
    to_inbox(logged);
    if (begun_by(*event).keyed) batch_.commit.answers.progressed.push_back(event->id);
    return {};
  }
  return start(*event, parts_of(record), logged.position);
}

// Another program's clock is wrong, or our own was when the event was accepted.
bool TurnBatchBuilder::is_of_the_future(const Event& event) const {
  return !event.claim && (is_input(event.type) || is_notify(event.type)) &&
         event.accepted_at > context_.clock.now() + std::chrono::days(1);
}

// Of an event from a time that has not come: its session would not expire before that time.
void TurnBatchBuilder::bring_to_now(Event& event) const {
  event.accepted_at = std::min(event.accepted_at, context_.clock.now());
}

// Runs what waited, oldest first, for as long as the session is not busy.
Result<void> TurnBatchBuilder::drain() {
  while (can_drain() && !again_) {
    const auto [parts, at] = oldest_in_inbox();
    --session_.inbox_size;
    batch_.changes = true;
    inbox_changed_ = true;
    auto event = model::decode_event(input_.key.encode(), parts.event_id, parts.type,
                                     parts.trace_id, parts.value);
    if (!event) {
      bury_unreadable(parts, event.error().message);
      continue;
    }
    bring_to_now(*event);
    // Its claim was consumed when it came to the inbox.
    if (auto started = start(*event, parts, at); !started) return fail(started.error());
  }
  return {};
}

// A batch that spills runs nothing. Otherwise the events that this batch has added run after all
// stored ones: the outcome depends on the order of a session's records, and not on how many of them
// come at a time (up to `max_drained`).
bool TurnBatchBuilder::can_drain() const {
  if (session_.busy() || input_.spill || !may_start()) return false;
  if (drained_ < stored_inbox_.size()) return true;
  const auto added = batch_.commit.inbox.added.size() - added_drained_;
  return added > 0 && session_.inbox_size == static_cast<std::int64_t>(added);
}

TurnBatchBuilder::Waiting TurnBatchBuilder::oldest_in_inbox() {
  if (drained_ < stored_inbox_.size()) return {stored_inbox_[drained_++], std::nullopt};
  const std::size_t oldest = added_drained_++;
  return {std::move(batch_.commit.inbox.added[oldest]), added_at_[oldest]};
}

// Consumes the event's claim if it has one. False: the claim is gone, the event has no effects.
Result<bool> TurnBatchBuilder::holds_claim(const Event& event) {
  const bool is_timer = event.type == EventType::timer || event.type == EventType::time_out;
  if (!event.claim) return !event.result && !is_timer;
  const Claim& claim = *event.claim;
  // An earlier event of this batch has it.
  if (std::ranges::find(batch_.commit.claims, claim) != batch_.commit.claims.end()) return false;
  switch (claim.kind) {
    case Claim::Kind::pending_call:
    case Claim::Kind::timer: {
      auto held = holds_timer(event);
      if (!held || !*held) return held;
      break;
    }
    case Claim::Kind::keyed_event: {
      auto taken = context_.store.answers().claimed(claim.id);
      if (!taken) return fail(taken.error());
      if (*taken) return false;
      break;
    }
    case Claim::Kind::dead_letter: {
      auto letter = context_.store.dead_letters().get(input_.key.project_id, claim.id);
      if (!letter && letter.error().code != Errc::not_found) return fail(letter.error());
      if (!letter || letter->state != store::DeadLetterState::fresh) return false;
      break;
    }
    case Claim::Kind::follow_up:
      return follow_up_waits(claim.id);
    case Claim::Kind::schedule:
      return take_schedule(event);
  }
  batch_.commit.claims.push_back(claim);
  return true;
}

// Runs an event that nothing holds back, unless it is known to fail. `at`: in the log; none if it
// was in the inbox before.
Result<void> TurnBatchBuilder::start(const Event& event, const store::InboxEvent& parts,
                                     const std::optional<model::Position>& at) {
  if (event.claim && event.claim->kind == Claim::Kind::follow_up) {
    // Not before it runs: what the user said while it waited has taken it back.
    auto waits = follow_up_waits(event.claim->id);
    if (!waits) return fail(waits.error());
    if (!*waits) return {};
    batch_.commit.claims.push_back(*event.claim);
  }
  const store::InHand in_hand{
      event.id, at ? at->partition : queue::partition_of(input_.key.encode(), context_.partitions),
      at ? at->offset : -1};
  const auto crashes = context_.recovery == nullptr
                           ? std::nullopt
                           : context_.recovery->crashes(event, in_hand.partition, at);
  if (crashes && !input_.alone) {
    again_ = wants_alone_ = true;
    return {};
  }
  if (crashes) batch_.commit.attempts_settled.push_back(event.id);
  if (event.type == EventType::user_message) cancel_follow_ups();
  if (batch_.first_started.empty()) batch_.first_started = event.id;
  if (!damage_.empty()) return bury_damaged(event, parts);
  if (crashes && *crashes >= context_.max_crashes) {
    return bury(event, parts,
                "the daemon went down " + std::to_string(context_.max_crashes) +
                    " times while it processed this event");
  }
  for (const auto* known : {&input_.refused, &input_.failed}) {
    if (const auto found = known->find(event.id); found != known->end()) {
      return bury(event, parts, found->second);
    }
  }
  if (crashes) {
    if (auto counted = context_.recovery->start(in_hand, *crashes); !counted) return counted;
  }
  if (input_.noted != nullptr) input_.noted->note(in_hand);
  return run(event);
}

Result<FlowPtr> TurnBatchBuilder::flow_for(const Event& event, const model::Endpoint& endpoint,
                                           const model::ProjectAssets& assets) {
  if (event.follow_up && !event.follow_up->flow_id.empty()) {
    return context_.assets.newest_flow(event.follow_up->flow_id);
  }
  if (is_input(event.type)) {
    const auto follow_up = assets.flow_ids.find(waiting_follow_up_flow(event, endpoint));
    return context_.assets.newest_flow(follow_up != assets.flow_ids.end() ? follow_up->second
                                                                          : endpoint.flow_id);
  }
  return context_.assets.flow(session_.execution->flow_id, session_.execution->flow_version);
}

Result<void> TurnBatchBuilder::run(const Event& event) {
  model::fault_point("turn.before_run");
  auto fails = [&](std::string reason) -> Result<void> {
    input_.failed.emplace(event.id, std::move(reason));
    again_ = true;
    return {};
  };
  // While it was in the inbox, something else may have come of its question.
  if (event.type == EventType::time_out && !waits_for(event)) return {};
  auto endpoint = context_.assets.endpoint(input_.key.endpoint_id);
  if (!endpoint) {
    if (is_store_failure(endpoint.error())) return fail(endpoint.error());
    return fails("its Endpoint is gone");
  }
  if (is_notify(event.type)) return say(event, *endpoint);
  auto assets = context_.assets.project(input_.key.project_id);
  if (!assets) {
    if (is_store_failure(assets.error())) return fail(assets.error());
    return fails("its project can't be read: " + assets.error().message);
  }
  if (event.type == EventType::follow_up && event.follow_up) {
    auto taken = take_up(event, *endpoint, **assets);
    if (!taken) return fail(taken.error());
    if (*taken == FollowUp::settled) return {};
  }
  auto flow = flow_for(event, **endpoint, **assets);
  if (!flow) {
    if (is_store_failure(flow.error())) return fail(flow.error());
    return fails("its Flow can't run: " + flow.error().message);
  }
  ++batch_.after.turns;
  running_ = session_.execution.value_or(model::Execution{});
  const bool is_follow_up_flow = runs_follow_up_flow(event, **endpoint, **flow);
  const ProjectLibrary library(context_.assets, **assets);
  const TurnClock clock;
  const auto begun = context_.stopwatch();
  try {
    auto effects = flows::run_turn({.flow = *(*flow)->flow,
                                    .assets = **assets,
                                    .endpoint = **endpoint,
                                    .session = std::move(session_),
                                    .profile = profile_,
                                    .event = event,
                                    .now = context_.clock.now(),
                                    .limits = context_.limits,
                                    .flow_version = (*flow)->version.version,
                                    .library = &library,
                                    .is_follow_up_flow = is_follow_up_flow,
                                    .is_overdue = [&clock] { return clock.is_overdue(); }});
    input_.spent += context_.stopwatch() - begun;
    if (input_.heartbeat != nullptr) input_.heartbeat->beat();
    // Looking for another Flow or a lexicon can meet a store that is down.
    if (!effects && is_store_failure(effects.error())) return fail(effects.error());
    if (!effects) return fails(effects.error().message);
    return apply(event, std::move(*effects), *endpoint, *flow);
  } catch (const std::exception&) {
    return fails("the Turn ended with an internal error");
  }
}

// Past the Flow, whatever the session is doing.
Result<void> TurnBatchBuilder::say(const Event& event, const EndpointPtr& endpoint) {
  auto effects = flows::notify_effects(std::move(session_), event, context_.clock.now());
  session_ = std::move(effects.session);
  batch_.changes = true;
  model::Execution none;
  none.input_id = event.id;
  none.source = event.type;
  return settle_outputs(none, true, false, std::move(effects.outputs), endpoint);
}

Result<void> TurnBatchBuilder::apply(const Event& event, model::Effects effects,
                                     const EndpointPtr& endpoint, const FlowPtr& flow) {
  const bool resumed = !is_input(event.type);
  // What the outputs belong to: the execution that goes on, or the one that this input began.
  const model::Execution begun = begun_by(event);
  const model::Execution& execution = resumed ? running_ : begun;
  session_ = std::move(effects.session);
  if (session_.execution) {
    session_.execution->keyed = execution.keyed;
    session_.execution->answer_until = execution.answer_until;
    session_.execution->flow_id = flow->version.flow_id;
    session_.execution->flow_version = flow->version.version;
  }
  if (effects.profile) {
    profile_.data = std::move(effects.profile->data);
    batch_.commit.profile.data = profile_.data;
  }
  if (effects.follow_ups_cancelled) cancel_follow_ups();
  // A Turn knows the wall clock only; what it wants waited for must not depend on that being set.
  const auto offset = timer_offset();
  for (auto& follow_up : effects.follow_ups) {
    follow_up.due_at += offset;
    if (follow_up.plan.expires_at) *follow_up.plan.expires_at += offset;
    batch_.commit.follow_ups.added.push_back(std::move(follow_up));
  }
  if (effects.call && effects.call->due_at) *effects.call->due_at += offset;
  if (effects.call) batch_.commit.calls.started.push_back(std::move(*effects.call));
  if (effects.time_out) {
    *effects.time_out->due_at += offset;
    batch_.commit.calls.started.push_back(std::move(*effects.time_out));
  }
  std::move(effects.log.begin(), effects.log.end(), std::back_inserter(batch_.after.log_lines));
  batch_.changes = true;
  return settle_outputs(execution, effects.execution_ended, resumed, std::move(effects.outputs),
                        endpoint);
}

void TurnBatchBuilder::to_inbox(const queue::LogRecord& logged) {
  batch_.commit.inbox.added.push_back(parts_of(logged.record));
  added_at_.push_back(logged.position);
  ++session_.inbox_size;
  inbox_changed_ = true;
}

// What language models took is used, whatever becomes of the Turn.
void TurnBatchBuilder::count_use(const Event& event) {
  const bool inject = event.type == EventType::inject;
  const std::int64_t tokens = event.result ? event.result->model_tokens : 0;
  if (!inject && tokens <= 0) return;
  auto endpoint = context_.assets.endpoint(input_.key.endpoint_id);
  if (!endpoint) return;
  const std::string& organisation = (*endpoint)->organisation_id;
  if (inject) batch_.commit.quota.push_back({organisation, store::injects_counter, 1});
  if (tokens > 0)
    batch_.commit.quota.push_back({organisation, store::model_tokens_counter, tokens});
}

void TurnBatchBuilder::close() {
  // What can't be read is overwritten with a reason only: never for the sake of a position.
  if (!damage_.empty() && batch_.commit.dead_letters.empty()) batch_.changes = false;
  settle_time_outs();
  batch_.commit.inbox.removed = static_cast<std::int64_t>(drained_);
  auto& added = batch_.commit.inbox.added;
  added.erase(added.begin(), added.begin() + static_cast<std::ptrdiff_t>(added_drained_));
  batch_.drain_more = !session_.busy() && session_.inbox_size > 0;
  batch_.commit.timers_ahead = timer_offset();
  if (inbox_changed_) batch_.after.inbox_size = session_.inbox_size;
  batch_.commit.after = std::move(session_);
  follow_commit();
}

void TurnBatchBuilder::follow_commit() {
  const store::SessionCommit& commit = batch_.commit;
  AfterCommit& after = batch_.after;
  after.progressed = commit.answers.progressed;
  after.speaks = !commit.outputs.empty();
  after.delivers = std::ranges::find(commit.outputs, model::Delivery::pending,
                                     &model::Output::delivery) != commit.outputs.end();
  for (const auto& call : commit.calls.started) {
    if (call.due_at) {
      after.timers.push_back(*call.due_at);
    } else {
      after.targets.push_back(store::target_of(call));
    }
  }
  for (const auto& follow_up : commit.follow_ups.added) after.timers.push_back(follow_up.due_at);
  for (const auto& use : commit.quota) {
    if (use.counter == store::injects_counter) after.injects.push_back(use);
  }
  after.settled = commit.attempts_settled;
  for (const auto& letter : commit.dead_letters) {
    after.dead_letters.push_back({letter.id, letter.event.trace_id, letter.reason});
  }
}

Result<TurnBatch> build_turn_batch(const TurnBatchContext& context, TurnBatchInput input) {
  for (;;) {
    if (input.noted != nullptr) input.noted->clear();
    TurnBatchBuilder builder(context, input);
    auto batch = builder.build();
    if (batch && *batch) return std::move(**batch);
    if (!batch) return fail(batch.error());
    if (!builder.wants_alone()) continue;
    TurnBatch nothing;
    nothing.wants_alone = true;
    return nothing;
  }
}

}  // namespace conversed::daemon
