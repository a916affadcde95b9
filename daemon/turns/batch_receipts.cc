#include "daemon/turns/batch_receipts.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "api/live/assets_cache.h"
#include "flows/turn/request_mark.h"
#include "flows/turn/turn_runner.h"
#include "store/commit/call_target.h"
#include "store/commit/stored_steps.h"
#include "store/model/ids.h"
#include "store/model/json.h"
#include "store/model/receipt_text.h"
#include "store/model/trace.h"
#include "store/text/utf8.h"

namespace conversed::daemon {
namespace {

using model::ReceiptText;

constexpr std::size_t most_text_bytes = 200;
constexpr std::size_t most_planned = 5;
constexpr std::size_t most_run_together = 20;
// The limit of an input's text and data, or of a profile, as JSON.
constexpr std::size_t most_recorded_bytes = std::size_t{16} << 10;
// The limit of the packed answer of an execution's first call. The n-th call's answer may have an
// n-th of it, so all answers leave room for the other steps (store::most_later_characters).
constexpr std::size_t most_answer_bytes = std::size_t{6} << 10;
constexpr std::size_t most_recorded_calls = 20;  // of an execution; its timers count, too

std::int64_t microseconds(std::chrono::steady_clock::duration took) {
  return std::chrono::duration_cast<std::chrono::microseconds>(took).count();
}

std::string short_text(std::string_view text) {
  return std::string(text::cut(text, most_text_bytes));
}

bool begins(const model::Event& event) {
  return model::is_input(event.type) || is_notify(event.type);
}

// Nodes and changes of variables.
void add_notes(ReceiptText& row, const model::TurnNotes& notes) {
  if (!notes.nodes.empty()) row.add_lines("nodes", notes.nodes);
  row.add("nodesRun", static_cast<std::int64_t>(notes.nodes_run));
  if (!notes.branches.empty()) row.add_texts("branches", notes.branches);
  if (notes.keeps_event) row.add("collected", true);
  if (!notes.events.empty()) {
    row.add("eventsRun", static_cast<std::int64_t>(notes.events.size()));
    const auto most = std::min(notes.events.size(), most_run_together);
    row.add_texts("events", std::span(notes.events).first(most));
  }
  if (notes.changes.empty()) return;
  if (notes.left_out > 0) row.add("changesLeftOut", static_cast<std::int64_t>(notes.left_out));
  auto changes = row.list("changes");
  for (const auto& change : notes.changes) {
    if (change.value && change.value == change.before) continue;  // the Turn has set it back
    auto shown = changes.object();
    shown.add("path", change.path);
    shown.add("bytes", static_cast<std::int64_t>(change.bytes));
    if (change.removed) shown.add("removed", true);
    if (change.value) shown.add_json("value", *change.value);
    if (change.bytes_before) {
      shown.add("bytesBefore", static_cast<std::int64_t>(*change.bytes_before));
    }
    if (change.before) shown.add_json("before", *change.before);
  }
}

// The rest of the input. The row has its beginning already.
void add_rest(ReceiptText& row, const model::Event& event) {
  std::string_view text = event.text ? std::string_view(*event.text) : std::string_view();
  text.remove_prefix(text::cut(text, most_text_bytes).size());
  if (text.empty() && event.data.is_null()) return;
  const auto data = event.data.is_null() ? std::string() : model::json_text(event.data);
  auto recorded = row.object("recorded");
  if (const auto bytes = text.size() + data.size(); bytes > most_recorded_bytes) {
    return recorded.add("bytes", static_cast<std::int64_t>(bytes));
  }
  if (!text.empty()) recorded.add("rest", text);
  if (!data.empty()) recorded.add_json("data", data);
}

void add_answer(ReceiptText& row, const model::CallResult& result) {
  auto shown = row.object("result");
  shown.add("id", result.call_id);
  nlohmann::json answer{{"status", result.status}};
  if (!result.body.is_null()) answer["body"] = result.body;
  if (!result.error_code.empty()) answer["error"] = result.error_code;
  if (!result.error_message.empty()) answer["message"] = result.error_message;
  if (result.model_tokens != 0) answer["tokens"] = result.model_tokens;
  auto text = model::json_text(answer);
  const auto bytes = static_cast<std::int64_t>(text.size());
  const auto n = store::number_of_call(result.call_id);
  // Packing a text that stays too large would be in vain.
  constexpr std::int64_t most_packed = 20 * most_answer_bytes;
  if (n <= most_recorded_calls && bytes <= most_packed) {
    const auto most = most_answer_bytes / n;
    text = store::packed(std::move(text), std::min(most, store::most_plain_step));
    if (text.size() <= most) return shown.add("answer", text);
  }
  shown.add("bytes", bytes);
}

// The call or timer for which the execution waits after the Turn.
void add_wait(ReceiptText& row, const model::PendingCall& pending) {
  auto call = row.object("waitsFor");
  call.add("id", pending.id);
  if (pending.due_at) {
    call.add("until", model::to_unix_ms(*pending.due_at));
    return;
  }
  call.add("to", store::shown_target(pending));
  if (pending.http) call.add("retries", pending.http->retries);
}

}  // namespace

ReceiptNote::ReceiptNote(BatchDraft& draft, const model::Event& event, const Sighting& sighting)
    : draft_(draft),
      event_(event),
      sighting_(sighting),
      last_output_(draft.session.last_output_seq),
      letters_(draft.commit().dead_letters.size()) {
  draft.step = {};
  draft.step.began_at = draft.context.clock.now();
  draft.step.follow_ups_before = draft.commit().follow_ups.added.size();
  behind_ = static_cast<std::int64_t>(draft.batch.after.processed.size());
  begun_by_ =
      begins(event) || !draft.session.execution ? event.id : draft.session.execution->input_id;
  if (!draft.context.keeps_receipts) return;
  const auto& session = draft.session;
  if (!begins(event)) {
    if (session.execution) input_id_ = session.execution->input_id;
  } else if (event.is_own && model::is_id(event.id)) {
    input_id_ = event.id;
    look_at_beginning();
  }
  if (session.execution) blocked_by_ = session.execution->pending_call_id;
}

// Notes the state that a conversation finds at its begin, if the event begins one.
void ReceiptNote::look_at_beginning() {
  if (!model::is_input(event_.type) || model::comes_of_silence(event_.type)) return;
  const auto endpoint = draft_.context.assets.endpoint(draft_.input.key.endpoint_id);
  if (!endpoint || !flows::starts_afresh(draft_.session, **endpoint, event_.accepted_at)) return;
  ReceiptText beginning;
  beginning.add("begins", true);
  const auto state = flows::state_after_reset(draft_.session.flow_state);
  if (!state.is_null()) beginning.add_json("state", model::json_text(state));
  if (!draft_.profile.data.empty()) {
    const auto profile = model::json_text(draft_.profile.data);
    if (profile.size() <= most_recorded_bytes) {
      beginning.add_json("profile", profile);
    } else {
      beginning.add("profileBytes", static_cast<std::int64_t>(profile.size()));
    }
  }
  beginning_ = std::move(beginning).finished();
}

// Adds the members of a Turn's `recorded`. `call`: for which the execution waits; null: for none.
void ReceiptNote::add_recorded(ReceiptText& row, const model::PendingCall* call) const {
  if (draft_.profile.version > 0) row.add("profileVersion", draft_.profile.version);
  if (draft_.step.changes_profile) row.add("changesProfile", true);
  if (call != nullptr && !call->due_at) row.add("request", flows::request_mark(*call));
  if (event_.type == model::EventType::timer && event_.claim) {
    row.add("timer", event_.claim->id);
    row.add("eventId", event_.id);
  }
  if (event_.result) add_answer(row, *event_.result);
  row.add_members(beginning_);
}

// The first row of an event links it to the session's receipts.
std::optional<store::NewReceiptRow> ReceiptNote::begin_row() {
  if (input_id_.empty()) return std::nullopt;
  if (sighting_.begun != nullptr) return *sighting_.begun;
  store::NewReceiptRow row{.input_id = input_id_, .first = std::nullopt, .body = {}};
  if (sighting_.at && input_id_ == event_.id) {
    row.first = {.trace_id = event_.trace_id,
                 .key = event_.origin.key,
                 .previous = std::exchange(draft_.session.last_receipt, event_.id)};
  }
  return row;
}

void ReceiptNote::add_acceptance(ReceiptText& step) const {
  auto accepted = step.object("accepted");
  accepted.add("type", model::to_string(event_.type));
  accepted.add("at", model::to_unix_ms(event_.accepted_at));
  if (!event_.origin.daemon.empty()) accepted.add("daemon", event_.origin.daemon);
  if (!event_.origin.user_id.empty()) accepted.add("by", event_.origin.user_id);
  if (event_.text) accepted.add("text", short_text(*event_.text));
  if (event_.claim && event_.claim->id != event_.id) accepted.add("claim", event_.claim->id);
  {
    auto at = accepted.list("position");
    at.add(sighting_.at->epoch);
    at.add(std::int64_t{sighting_.at->partition});
    at.add(sighting_.at->offset);
  }
  add_rest(accepted, event_);
}

std::optional<store::NewReceiptRow> ReceiptNote::waits() {
  auto row = begin_row();
  if (!row || !row->first) return std::nullopt;
  ReceiptText text;
  text.add("what", "waits");
  add_acceptance(text);
  // The session's size counts this event.
  text.add("behind", std::max<std::int64_t>(draft_.session.inbox_size - 1, 0));
  if (!blocked_by_.empty()) text.add("blockedBy", blocked_by_);
  row->body = std::move(text).finished();
  return row;
}

// A request's span is the parent of the others. An event without a request has its wait instead.
void ReceiptNote::add_spans() {
  if (draft_.context.spans == nullptr || !model::is_sampled(begun_by_)) return;
  const auto& step = draft_.step;
  const std::string parent = model::span_of_event(begun_by_);
  const bool has_request =
      event_.is_own && (!event_.claim || event_.claim->kind == model::Claim::Kind::keyed_event);
  const bool is_first = begins(event_) && !has_request;
  auto& spans = draft_.batch.after.spans;
  spans.push_back(
      {.trace_id = event_.trace_id,
       .span_id = is_first ? parent : model::new_span_id(),
       .parent_id = is_first ? std::string() : parent,
       .name = "wait",
       .begin = event_.accepted_at,
       .took = std::max(step.began_at - event_.accepted_at, model::Timestamp::duration()),
       .attributes = {{"conversed.events.before", behind_}},
       .error = {}});
  Span turn{.trace_id = event_.trace_id,
            .span_id = model::new_span_id(),
            .parent_id = parent,
            .name = "Turn",
            .begin = step.began_at,
            .took = std::chrono::duration_cast<std::chrono::microseconds>(step.took),
            .attributes = {{"conversed.event.id", event_.id},
                           {"conversed.event.type", std::string(model::to_string(event_.type))}},
            .error = draft_.commit().dead_letters.size() > letters_ ? "dead_letter" : ""};
  if (!step.flow.empty()) {
    turn.name += ' ' + step.flow;
    turn.attributes.emplace_back("conversed.flow.version", step.version);
    turn.attributes.emplace_back("conversed.nodes.run",
                                 static_cast<std::int64_t>(step.notes.nodes_run));
  }
  spans.push_back(std::move(turn));
}

WaitCause ReceiptNote::wait_cause() const {
  if (sighting_.in_recovery) return WaitCause::recovery;
  if (!sighting_.at || sighting_.begun != nullptr) return WaitCause::inbox;
  return behind_ > 0 ? WaitCause::events : WaitCause::log;
}

void ReceiptNote::add_processed() {
  draft_.batch.after.processed.push_back({.cause = wait_cause(),
                                          .waited = draft_.step.began_at - event_.accepted_at,
                                          .took = draft_.step.took,
                                          .flow_id = std::exchange(draft_.step.flow_id, {})});
  add_spans();
  auto row = begin_row();
  if (!row) return;
  const auto& step = draft_.step;
  auto& commit = draft_.commit();
  ReceiptText text;
  text.add("what", "turn");
  if (row->first) add_acceptance(text);
  if (row->first && behind_ > 0) text.add("behind", behind_);
  if (sighting_.in_recovery) text.add("recovery", true);
  text.add("at", model::to_unix_ms(step.began_at));
  text.add("us", microseconds(step.took));
  if (row->input_id != event_.id) text.add("event", model::to_string(event_.type));
  if (!step.flow.empty()) {
    text.add("flow", step.flow);
    text.add("version", step.version);
    add_notes(text, step.notes);
  }
  if (const auto said = draft_.session.last_output_seq - last_output_; said > 0) {
    auto outputs = text.list("outputs");
    outputs.add(last_output_ + 1);
    outputs.add(said);
  }
  const model::PendingCall* pending = nullptr;
  const auto& execution = draft_.session.execution;
  if (execution && execution->input_id == row->input_id) {
    const auto call = std::ranges::find(commit.calls.started, execution->pending_call_id,
                                        &model::PendingCall::id);
    if (call != commit.calls.started.end()) pending = &*call;
  }
  if (pending != nullptr) add_wait(text, *pending);
  const auto& planned = commit.follow_ups.added;
  if (const auto before = step.follow_ups_before; planned.size() > before) {
    auto dues = text.list("followUps");
    const auto most = std::min(planned.size(), before + most_planned);
    for (auto i = before; i < most; ++i) dues.add(model::to_unix_ms(planned[i].due_at));
  }
  if (commit.dead_letters.size() > letters_) {
    text.add("deadLetter", commit.dead_letters.back().id);
    text.add("reason", short_text(commit.dead_letters.back().reason));
  }
  if (!step.ended.empty()) text.add("ended", step.ended);
  text.add_object("recorded", [&](ReceiptText& recorded) { add_recorded(recorded, pending); });
  row->body = std::move(text).finished();
  add_runs(row->input_id);
  commit.receipts.push_back(*std::move(row));
}

// A step of each event that was kept and ran in this Turn.
void ReceiptNote::add_runs(const std::string& input_id) {
  const auto& step = draft_.step;
  if (step.notes.events.empty()) return;
  ReceiptText text;
  text.add("what", "ran");
  text.add("at", model::to_unix_ms(step.began_at));
  text.add("turnOf", input_id);
  const auto body = std::move(text).finished();
  for (const auto& id : step.notes.events) {
    draft_.commit().receipts.push_back({.input_id = id, .first = std::nullopt, .body = body});
  }
}

}  // namespace conversed::daemon
