// The beginning of a Turn, its way through the Nodes, and its end.
#include "flows/turn/turn_runner.h"

#include <algorithm>
#include <set>
#include <utility>

#include "flows/json_members.h"
#include "flows/turn/standing.h"

namespace conversed::flows {

using model::Errc;
using model::EventType;

namespace {

constexpr std::size_t steps_a_node = 20;  // the cost of a Node that does nothing
constexpr std::size_t steps_a_name = 4;

}  // namespace

Result<model::Effects> TurnRunner::run() {
  try {
    auto effects = run_nodes();
    if (!effects) note_failure();
    return effects;
  } catch (...) {
    note_failure();
    throw;
  }
}

void TurnRunner::note_failure() {
  if (input_.failed_at == nullptr) return;
  *input_.failed_at = {flow().name(), top().version, top().at == end_of_flow ? "" : here().address};
}

Result<model::Effects> TurnRunner::run_nodes() {
  auto step = first_step();
  Result<void> done = step ? advance(std::move(*step)) : Result<void>(model::fail(step.error()));
  // Comes first, because outputs and errors of Nodes are meaningless after the budget was spent.
  if (auto left = check_budget(); !left) done = std::move(left);
  if (!done) return model::fail(done.error());
  arm_journey();
  save_flow_state();
  return std::move(effects_);
}

Result<Step> TurnRunner::first_step() {
  if (input_.failure != nullptr) return begin_after_failure();
  return is_input(event().type) ? begin() : resume();
}

Result<Step> TurnRunner::begin() {
  const bool goes_on = model::comes_of_silence(event().type) && !session().busy();
  if (!goes_on && starts_afresh(session(), input_.endpoint, event().accepted_at)) {
    if (!session().context.empty()) note_reset(expression::Path::Root::context);
    reset_session(session(), event().accepted_at);
  } else if (session().busy()) {
    return model::fail(Errc::conflict, "the session has a running execution");
  }
  if (auto good = restore_flow_state(); !good) return model::fail(good.error());
  begin_execution();
  if (event().type == EventType::time_out) return enter_time_out();
  keep_inject();
  if (!waiting_.is_null()) return enter_waiting_node();
  if (auto found = find_slots({&flow()}); !found) return model::fail(found.error());
  return Jump{flow().start()};
}

// The failed Turn had no effects, so its numbers are free.
Result<Step> TurnRunner::begin_after_failure() {
  auto failed = end_failed(session(), input_.endpoint, event());
  if (auto good = restore_flow_state(); !good) return model::fail(good.error());
  if (!failed) {
    begin_execution();
  } else {
    execution_ = std::move(*failed);
    nlohmann::json state = std::move(execution_.state);
    if (!restore_progress(state)) {
      return model::fail(Errc::internal, "the execution's stored state can't be read");
    }
    turns_ = 1;
  }
  set_input_error("turn_failed", *input_.failure, 0);
  if (auto found = find_slots({&flow()}); !found) return model::fail(found.error());
  return Jump{flow().start()};
}

void TurnRunner::begin_execution() {
  note_input(session(), event());
  ++executions_;
  execution_.input_id = event().id;
  execution_.source = event().type;
  execution_.began_at = event().accepted_at;
  execution_.trace_id = event().trace_id;
  execution_.tracestate = event().tracestate;
  execution_.flow_id = input_.endpoint.flow_id;
  execution_.flow_version = input_.flow_version;
  execution_.keyed = event().claim && event().claim->kind == model::Claim::Kind::keyed_event;
  input_object_ = nlohmann::json::object();
  input_is_complete_ = false;
  note_locale();
  count_follow_up();
}

// Keeps the inject until a Node takes it.
void TurnRunner::keep_inject() {
  if (event().type != EventType::inject || !may_wait_for_event()) return;
  untaken_.push_back(
      {{"n", executions_},
       {"at", model::to_unix_ms(input_.now)},
       {"event", {{"id", event().id}, {"text", input_text()}, {"data", event_data()}}}});
}

// Whether a Node may look for the inject later: of this Flow, of the Endpoint's, of Flows in which
// the session waits, or of Flows that one of these enters.
bool TurnRunner::may_wait_for_event() {
  if (input_.flow.keeps_injects()) return true;
  std::vector<std::string> names;  // of other Flows
  std::set<std::string, std::less<>> known;
  const auto add = [&](const std::string& name) {
    budget().step(steps_a_name);
    if (name != input_.flow.name() && known.insert(name).second) names.push_back(name);
  };
  for (const auto& name : input_.flow.entered()) add(name);
  if (input_.is_follow_up_flow) {
    for (const auto& [name, id] : input_.assets.flow_ids) {
      if (id == input_.endpoint.flow_id) add(name);
    }
  }
  for (const auto* place : {&waiting_, &behind_}) {
    if (place->is_null()) continue;
    for (const auto& standing : standings_of(*place, 0)) add(standing.flow);
  }
  std::size_t looked_up = 0;  // of the names, to which the loop adds
  while (looked_up < names.size()) {
    const auto found = look_up(names[looked_up++], 0);
    if (!found && found.error().code == Errc::not_found) continue;
    // A Flow that can't be read now may have such a Node. The Turn does not wait for it.
    if (!found || found->flow->keeps_injects()) return true;
    for (const auto& name : found->flow->entered()) add(name);
  }
  return false;
}

Result<bool> TurnRunner::takes_inject() {
  if (auto good = restore_flow_state(); !good) return model::fail(good.error());
  begin_execution();
  keep_inject();
  auto restored = restore_frames(waiting_, false);
  if (!restored) return model::fail(restored.error());
  if (!*restored) return false;
  if (auto found = find_slots(entered_flows()); !found) return model::fail(found.error());
  recall(waiting_);
  return here().node->takes_inject(*this);
}

void TurnRunner::start_over() {
  frames_.assign(1, {&input_.flow, input_.flow_version});
  show_arguments();
}

Result<Step> TurnRunner::enter_waiting_node() {
  const nlohmann::json waiting = std::exchange(waiting_, nullptr);
  auto restored = restore_frames(waiting, false);
  if (!restored) return model::fail(restored.error());
  const auto& name = waiting["flow"].get_ref<const std::string&>();
  const auto& at = waiting["at"].get_ref<const std::string&>();
  if (!*restored || here().node->awaits() != Node::Awaits::input) {
    start_over();
    const std::string of = name == flow().name() ? "" : " of the Flow '" + name + "'";
    log("the Flow '" + flow().name() + "' starts again: the Node " + at + of +
        " at which it waited is gone");
    give_back(name, at);
  } else if (!here().node->keeps_injects()) {
    give_back(name, at);  // of a `collect` that stood there
  }
  if (auto found = find_slots(entered_flows()); !found) return model::fail(found.error());
  if (top().at == end_of_flow) return Jump{flow().start()};
  recall(waiting);
  // A message of the user restarts the question's time.
  const std::string* timer = find_text(waiting, "timer");
  if (timer != nullptr &&
      (event().type != EventType::user_message || is_time_out_of_event(*timer))) {
    kept_time_out_ = *timer;
  }
  if (auto counted = count_visit(); !counted) return model::fail(counted.error());
  return here().node->on_input(*this);
}

// The injects of a `collect` that is gone count as untaken again.
void TurnRunner::give_back(const std::string& flow_name, const std::string& address) {
  const auto memory = memory_.find(memory_key(flow_name, address));
  if (memory == memory_.end() || !memory->is_object()) return;
  const auto events = memory->find("events");
  if (events == memory->end() || !are_events(*events) || events->empty()) return;
  for (auto& kept : *events) untaken_.push_back(std::move(kept));
  memory_.erase(memory);
  std::ranges::stable_sort(untaken_.get_ref<nlohmann::json::array_t&>(), {},
                           [](const auto& kept) { return find_count(kept, "n").value_or(0); });
}

// The waiting question handles its time-out. If the newest version of its Flow lacks the question
// or its time-out, the question keeps waiting for an input.
Result<Step> TurnRunner::enter_time_out() {
  nlohmann::json waiting = std::exchange(waiting_, nullptr);
  const std::string id = event().claim ? event().claim->id : std::string();
  if (!waiting.is_object() || id.empty() || waiting.value("timer", nlohmann::json()) != id) {
    return model::fail(Errc::conflict, "no question waits for this time-out");
  }
  waiting.erase("timer");
  auto restored = restore_frames(waiting, false);
  if (!restored) return model::fail(restored.error());
  const bool is_of_another = is_time_out_of_burst(id) && *restored && !here().node->keeps_injects();
  if (!*restored || !here().node->takes_time_out() || is_of_another) {
    start_over();
    log("the time-out of the Node " + waiting["at"].get_ref<const std::string&>() +
        " of the Flow '" + waiting["flow"].get_ref<const std::string&>() +
        "' has no effect: the Flow no longer has that question with a time-out");
    waiting_ = std::move(waiting);
    return Stop{};
  }
  recall(waiting);
  if (auto counted = count_visit(); !counted) return model::fail(counted.error());
  return here().node->on_time_out(*this);
}

// The execution ends. The current Node gets the next input, or the time-out.
void TurnRunner::wait_for_input(const Wait& wait) {
  waits_ = true;
  if (!wait.time_out) return;
  if (wait.what != Wait::For::input) until_ = input_.now + *wait.time_out;
  if (!kept_time_out_.empty() && !wait.renews) {
    time_out_ = std::move(kept_time_out_);
    return;
  }
  model::PendingCall timer;
  timer.id = time_out_ = execution_.input_id + std::string(time_out_suffix(wait.what));
  timer.session = session().key;
  timer.trace_id = execution_.trace_id;
  timer.tracestate = execution_.tracestate;
  timer.due_at = input_.now + *wait.time_out;
  timer.is_time_out = true;
  effects_.time_out = std::move(timer);
}

void TurnRunner::recall(const nlohmann::json& waiting) {
  if (const auto state = waiting.find("state"); state != waiting.end()) node_state_ = *state;
  if (const auto tool = waiting.find("tool"); tool != waiting.end()) {
    input_object_["tool"] = *tool;
  }
}

Result<Step> TurnRunner::resume() {
  if (!session().busy()) {
    return model::fail(Errc::conflict, "the session has no execution that could continue");
  }
  const std::string& pending = session().execution->pending_call_id;
  const bool is_call = event().type == EventType::call_result;
  if (is_call && !event().result) {
    return model::fail(Errc::invalid_argument, "the event holds no result of a call");
  }
  const auto& claim = event().claim;
  const bool other_claim =
      claim && claim->id != pending &&
      (claim->kind == model::Claim::Kind::pending_call || claim->kind == model::Claim::Kind::timer);
  if ((is_call && event().result->call_id != pending) || other_claim) {
    return model::fail(Errc::conflict, "the execution waits for something else");
  }
  if (auto good = restore_flow_state(); !good) return model::fail(good.error());
  if (auto good = restore_execution(); !good) return model::fail(good.error());
  const auto awaited = is_call ? Node::Awaits::call_result : Node::Awaits::timer;
  if (here().node->awaits() != awaited) {
    return failure(Errc::internal, "the execution stands at a Node that awaits no such event");
  }
  if (++turns_ > static_cast<std::int64_t>(input_.limits.turns_per_execution)) {
    return exceeded("the execution takes more than ", input_.limits.turns_per_execution, " Turns");
  }
  if (auto counted = count_visit(); !counted) return model::fail(counted.error());
  const Node& node = *here().node;
  return is_call ? node.on_call_result(*this, *event().result) : node.on_timer(*this);
}

Result<void> TurnRunner::count_visit() {
  const Limits& limits = input_.limits;
  budget().step(steps_a_node);
  budget().look_at_clock();
  if (auto left = check_budget(); !left) return left;
  if (++nodes_run_ > limits.nodes_per_turn) {
    return exceeded("more than ", limits.nodes_per_turn, " Nodes in one Turn");
  }
  auto& visits = visits_[&flow()];
  if (visits.empty()) {
    visits.resize(flow().slots().size(), 0);
    if (input_.flows_run != nullptr) input_.flows_run->push_back({flow().name(), top().version});
  }
  if (++visits[static_cast<std::size_t>(top().at)] > limits.visits_per_node) {
    return exceeded("runs more than ", limits.visits_per_node, " times in one Turn");
  }
  effects_.notes.nodes_run = nodes_run_;
  note_node();
  if (input_.observer != nullptr) input_.observer->runs(flow(), here(), scope());
  return {};
}

// Tells the observer that the current Node leads there. Returns `to`.
NodeIndex TurnRunner::noted_way(NodeIndex to) const {
  if (input_.observer != nullptr && top().at != end_of_flow) {
    input_.observer->leads(flow(), here(), to);
  }
  return to;
}

// The call or timer whose result the Step waits for. Nothing: the Turn goes on.
std::optional<model::PendingCall> TurnRunner::awaited_by(Step& step) const {
  model::PendingCall pending;
  if (auto* call = std::get_if<CallUpstream>(&step)) {
    pending.http = std::move(call->http);
  } else if (auto* ask = std::get_if<AskKnowledge>(&step)) {
    pending.search = std::move(ask->query);
  } else if (auto* run = std::get_if<RunCode>(&step)) {
    pending.code = std::move(run->code);
  } else if (const auto* sleep = std::get_if<Sleep>(&step)) {
    pending.due_at = input_.now + sleep->duration;
  } else {
    return std::nullopt;
  }
  return pending;
}

// Follows the Steps, beginning with `step` of the current Node, until one ends the Turn.
Result<void> TurnRunner::advance(Step step) {
  while (true) {
    if (auto pending = awaited_by(step)) return suspend(std::move(*pending));
    NodeIndex next = end_of_flow;
    if (std::holds_alternative<Continue>(step)) {
      next = noted_way(here().next);
    } else if (const auto* jump = std::get_if<Jump>(&step)) {
      next = noted_way(jump->to);
    } else if (auto* entered = std::get_if<Enter>(&step)) {
      auto first = enter(std::move(*entered));
      if (!first) return model::fail(first.error());
      next = *first;
    } else if (auto* returned = std::get_if<Return>(&step)) {
      returned_ = std::move(returned->value);
      next = noted_way(end_of_flow);
    } else if (std::holds_alternative<Restart>(step)) {
      start_over();
      next = flow().start();
    } else {  // Wait or Stop
      if (const auto* wait = std::get_if<Wait>(&step)) wait_for_input(*wait);
      effects_.execution_ended = true;
      return {};
    }
    node_state_ = nullptr;
    kept_time_out_.clear();
    auto goes_on = go_on(next);
    if (!goes_on) return model::fail(goes_on.error());
    if (!*goes_on) {
      effects_.execution_ended = true;
      return {};
    }
    auto result = here().node->run(*this);
    if (!result) return model::fail(result.error());
    step = std::move(*result);
  }
}

Result<bool> TurnRunner::go_on(NodeIndex next) {
  while (next == end_of_flow) {
    if (frames_.size() == 1) return false;
    frames_.pop_back();
    show_arguments();
    auto taken = here().node->on_return(*this, std::exchange(returned_, nullptr));
    if (!taken) return model::fail(taken.error());
    next = noted_way(here().next);
  }
  came_from_ = std::exchange(frames_.back().at, next);
  std::erase_if(frames_.back().loops, [&](const Loop& each) {
    return each.node != next && !flow().slot(each.node).node->repeats(next);
  });
  if (auto counted = count_visit(); !counted) return model::fail(counted.error());
  return true;
}

Result<Turn::Frame> TurnRunner::look_up(const std::string& name, std::int64_t version) {
  if (name == input_.flow.name()) return Frame{&input_.flow, input_.flow_version};
  const auto key = std::pair(name, version);
  auto held = held_.find(key);
  if (held == held_.end()) {
    if (input_.library == nullptr) return model::fail(Errc::not_found, "there is no such Flow");
    auto found = input_.library->flow(name, version);
    if (!found) return model::fail(found.error());
    held = held_.emplace(key, std::move(*found)).first;
  }
  return Frame{held->second.flow.get(), held->second.version};
}

Result<NodeIndex> TurnRunner::enter(Enter step) {
  auto frame = look_up(step.flow, 0);
  if (!frame && frame.error().code == Errc::not_found) {
    return failure(Errc::invalid_argument, "there is no Flow '" + step.flow + "'");
  }
  if (!frame) return model::fail(frame.error());
  if (auto good = check_kept(step.arguments); !good) return model::fail(good.error());
  frame->arguments = std::move(step.arguments);
  if (step.comes_back) {
    if (frames_.size() + 1 > input_.limits.flow_depth) {
      return exceeded("enters more than ", input_.limits.flow_depth, " Flows one inside the other");
    }
  } else {
    frames_.clear();
  }
  frames_.push_back(std::move(*frame));
  show_arguments();
  if (flow().lexicons().empty()) return flow().start();
  if (auto found = find_slots(entered_flows()); !found) return model::fail(found.error());
  return flow().start();
}

Result<void> TurnRunner::suspend(model::PendingCall call) {
  // Made of the input's id and a counter, so a rerun asks for the same call under the same key.
  execution_.pending_call_id = execution_.input_id + "-c" + std::to_string(++calls_made_);
  if (call.http) {
    std::size_t size = call.http->url.size() + call.http->body.size();
    for (const auto& [name, value] : call.http->headers) size += name.size() + value.size();
    if (size > input_.limits.call_bytes) {
      return exceeded("a call of more than ", input_.limits.call_bytes, " bytes");
    }
    call.http->idempotency_key = execution_.pending_call_id;
  }
  if (call.code) {
    const std::size_t limit = input_.limits.call_bytes;
    if (call.code->script.size() + measure(call.code->values, limit) > limit) {
      return exceeded("a script with values of more than ", limit, " bytes");
    }
    if (auto left = check_budget(); !left) return left;
  }
  execution_.state = execution_state();
  execution_.entered = pinned_flows();
  call.id = execution_.pending_call_id;
  call.session = session().key;
  call.trace_id = execution_.trace_id;
  call.tracestate = execution_.tracestate;
  effects_.call = std::move(call);
  session().execution = std::move(execution_);
  return {};
}

// Counts a follow-up of the journey when it begins, even if it fails later.
void TurnRunner::count_follow_up() {
  const auto& journey = input_.assets.journey;
  if (!event().follow_up || !event().follow_up->of_journey || !journey) return;
  follow_up_counts_.count(*journey, input_.now);
}

// The user's silence counts from the end of the execution, not from the acceptance of the message:
// after a long call or a downtime the user may have got the answer just now.
void TurnRunner::arm_journey() {
  const auto& journey = input_.assets.journey;
  if (!effects_.execution_ended || execution_.source != EventType::user_message ||
      follow_ups_settled_ || !journey || input_.endpoint.follow_up_flow_id.empty()) {
    return;
  }
  model::FollowUp made;
  made.due_at = past_quiet_hours(journey->quiet_hours, input_.now + journey->after);
  if (!follow_up_counts_.allow(*journey, made.due_at)) return;
  made.id = execution_.input_id + "-f0";
  made.session = session().key;
  made.trace_id = execution_.trace_id;
  made.tracestate = execution_.tracestate;
  if (journey->expires_after) {
    made.plan.expires_at = input_.now + *journey->expires_after;
    if (made.due_at >= *made.plan.expires_at) return;  // the quiet hours end after the expiry
  }
  made.plan.flow_id = input_.endpoint.follow_up_flow_id;
  made.plan.of_journey = true;
  effects_.follow_ups.push_back(std::move(made));
}

Result<model::Effects> run_turn(TurnInput input) {
  return TurnRunner(std::move(input)).run();
}

Result<bool> takes_inject(TurnInput input) {
  return TurnRunner(std::move(input)).takes_inject();
}

}  // namespace conversed::flows
