// How a Turn begins, goes on and ends: what is read from the stored session and what is written
// back.
#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "flows/node_types.h"
#include "flows/turn.h"

namespace conversed::flows {
namespace {

using model::Errc;
using model::EventType;
using nlohmann::json;

// Of both states below. They are read by later versions of the daemon, too.
constexpr int state_format = 1;

bool is_input(EventType type) {
  return type == EventType::user_message || type == EventType::inject ||
         type == EventType::follow_up;
}

std::string_view source_name(EventType type) {
  if (type == EventType::user_message) return "user";
  return type == EventType::follow_up ? "followUp" : "inject";
}

void append_digits(std::string& text, unsigned value, int width) {
  std::array<char, 10> digits{};
  for (int i = width - 1; i >= 0; --i) {
    digits[static_cast<std::size_t>(i)] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  text.append(digits.data(), static_cast<std::size_t>(width));
}

// `2026-11-21T04:12:46.123Z`, what JavaScript's toISOString gives. Years are 0 to 9999.
std::string iso_time(model::Timestamp time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::string text;
  text.reserve(24);
  append_digits(text, static_cast<unsigned>(std::max(0, static_cast<int>(date.year()))), 4);
  text += '-';
  append_digits(text, static_cast<unsigned>(date.month()), 2);
  text += '-';
  append_digits(text, static_cast<unsigned>(date.day()), 2);
  text += 'T';
  append_digits(text, static_cast<unsigned>(clock.hours().count()), 2);
  text += ':';
  append_digits(text, static_cast<unsigned>(clock.minutes().count()), 2);
  text += ':';
  append_digits(text, static_cast<unsigned>(clock.seconds().count()), 2);
  text += '.';
  append_digits(text, static_cast<unsigned>(clock.subseconds().count()), 3);
  return text + 'Z';
}

// Members of stored states. Bad shapes are values, never exceptions.
const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}
std::optional<std::int64_t> count_of(const json& object, const char* name) {
  const json* found = member(object, name);
  if (found == nullptr || !found->is_number_integer()) return std::nullopt;
  const auto count = found->get<std::int64_t>();
  if (count < 0 || count > std::int64_t{1} << 53) return std::nullopt;
  return count;
}
const std::string* text_of(const json& object, const char* name) {
  const json* found = member(object, name);
  return found != nullptr && found->is_string() ? found->get_ptr<const std::string*>() : nullptr;
}

void reset(model::Session& session, model::Timestamp now) {
  session.started_at = now;
  session.context = json::object();
  session.flow_state = nullptr;
  session.execution.reset();
}

}  // namespace

// Runs one Turn from its beginning to its Effects. One use.
class TurnRunner {
 public:
  explicit TurnRunner(TurnInput input)
      : turn_(std::move(input)), visits_(turn_.flow().slots().size(), 0) {}

  Result<model::Effects> run();

 private:
  Result<Step> begin();
  Result<Step> resume();
  Result<Step> enter_waiting_node();
  Result<void> restore_flow_state();
  Result<void> restore_execution();
  void make_input_object();
  Result<void> advance(Step step);
  Result<void> count_visit();
  Result<void> suspend(std::optional<model::HttpCall> http, std::optional<model::Timestamp> due_at);
  Result<void> check_call(const model::HttpCall& call) const;
  void save_flow_state();
  Result<void> restore_waiting(json& state);
  void arm_journey();

  [[nodiscard]] const model::Event& event() const { return turn_.input_.event; }
  [[nodiscard]] model::Session& session() { return turn_.effects_.session; }

  Turn turn_;
  std::size_t nodes_run_ = 0;
  std::vector<std::uint32_t> visits_;  // of each Node
};

Result<model::Effects> TurnRunner::run() {
  auto step = is_input(event().type) ? begin() : resume();
  if (!step) return model::fail(step.error());
  if (auto done = advance(std::move(*step)); !done) return model::fail(done.error());
  arm_journey();
  save_flow_state();
  return std::move(turn_.effects_);
}

Result<Step> TurnRunner::begin() {
  // A follow-up belongs to the conversation that fell silent, however long ago.
  const bool goes_on = event().type == EventType::follow_up && !session().busy();
  if (!goes_on && starts_afresh(session(), turn_.input_.endpoint, event().accepted_at)) {
    reset(session(), event().accepted_at);
  } else if (session().busy()) {
    return model::fail(Errc::conflict, "the session has an execution that is not over");
  }
  if (auto good = restore_flow_state(); !good) return model::fail(good.error());
  session().key = event().session;
  session().last_activity_at = std::max(session().last_activity_at, event().accepted_at);
  ++turn_.executions_;
  model::Execution& execution = turn_.execution_;
  execution.input_id = event().id;
  execution.source = event().type;
  execution.began_at = event().accepted_at;
  execution.trace_id = event().trace_id;
  execution.flow_id = turn_.input_.endpoint.flow_id;
  execution.flow_version = turn_.input_.flow_version;
  execution.keyed = event().claim && event().claim->kind == model::Claim::Kind::keyed_event;
  make_input_object();
  const auto& journey = turn_.input_.assets.journey;
  if (event().follow_up && event().follow_up->of_journey && journey) {
    turn_.follow_up_counts_.count(*journey, turn_.input_.now);
  }
  if (!turn_.waits_at_.empty()) return enter_waiting_node();
  return Jump{turn_.flow().start()};
}

Result<Step> TurnRunner::enter_waiting_node() {
  const std::string address = std::exchange(turn_.waits_at_, {});
  const NodeIndex found = turn_.flow().find(address);
  if (found == end_of_flow || turn_.flow().slot(found).node->awaits() != Node::Awaits::input) {
    turn_.node_state_ = nullptr;
    turn_.log("the Flow '" + turn_.flow().name() + "' starts again: the Node " + address +
              " at which it waited is gone");
    return Jump{turn_.flow().start()};
  }
  turn_.at_ = found;
  if (auto counted = count_visit(); !counted) return model::fail(counted.error());
  return turn_.here().node->on_input(turn_);
}

Result<Step> TurnRunner::resume() {
  if (!session().busy()) {
    return model::fail(Errc::conflict, "the session has no execution that could go on");
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
  if (turn_.here().node->awaits() != awaited) {
    return turn_.failure(Errc::internal,
                         "the execution stands at a Node that awaits no such event");
  }
  if (++turn_.turns_ > static_cast<std::int64_t>(turn_.limits().turns_per_execution)) {
    return turn_.failure(Errc::too_large, "the execution takes more than " +
                                              std::to_string(turn_.limits().turns_per_execution) +
                                              " Turns");
  }
  if (auto counted = count_visit(); !counted) return model::fail(counted.error());
  const Node& node = *turn_.here().node;
  return is_call ? node.on_call_result(turn_, *event().result) : node.on_timer(turn_);
}

Result<void> TurnRunner::restore_flow_state() {
  const auto unreadable = [] {
    return model::fail(Errc::internal, "the session's stored state can't be read");
  };
  if (!session().context.is_object() || !turn_.input_.profile.data.is_object()) return unreadable();
  json& state = session().flow_state;
  if (state.is_null()) return {};
  const auto executions = count_of(state, "executions");
  if (count_of(state, "v") != state_format || !executions) return unreadable();
  turn_.executions_ = *executions;
  if (const json* once = member(state, "once")) {
    if (!once->is_object()) return unreadable();
    turn_.once_marks_ = std::move(state["once"]);
  }
  const auto counts = counts_from(state);
  if (!counts) return unreadable();
  turn_.follow_up_counts_ = *counts;
  return restore_waiting(state);
}

// Where the Flow waits for the input. The follow-up Flow leaves alone where the Endpoint's waits.
Result<void> TurnRunner::restore_waiting(json& state) {
  turn_.is_follow_up_flow_ = turn_.input_.is_follow_up_flow;
  if (const json* behind = member(state, "behind")) turn_.behind_ = *behind;
  const json* waiting = member(state, "waiting");
  if (waiting == nullptr) return {};
  const std::string* at = text_of(*waiting, "at");
  const std::string* flow = text_of(*waiting, "flow");
  if (at == nullptr || flow == nullptr) {
    return model::fail(Errc::internal, "the session's stored state can't be read");
  }
  if (*flow == turn_.flow().name()) {
    turn_.waits_at_ = *at;
    if (const json* node_state = member(*waiting, "state")) turn_.node_state_ = *node_state;
  } else if (turn_.is_follow_up_flow_) {
    turn_.behind_ = *waiting;
  } else {
    turn_.log("the session waited in the Flow '" + *flow + "'; it starts in '" +
              turn_.flow().name() + "'");
  }
  return {};
}

Result<void> TurnRunner::restore_execution() {
  turn_.execution_ = std::move(*session().execution);
  session().execution.reset();
  turn_.waits_at_.clear();
  json state = std::move(turn_.execution_.state);
  const auto outputs = count_of(state, "outputs");
  const auto calls = count_of(state, "calls");
  const auto turns = count_of(state, "turns");
  const std::string* flow = text_of(state, "flow");
  const std::string* at = text_of(state, "at");
  const json* input = member(state, "input");
  if (count_of(state, "v") != state_format || !outputs || !calls || !turns || flow == nullptr ||
      at == nullptr || input == nullptr || !input->is_object()) {
    return model::fail(Errc::internal, "the execution's stored state can't be read");
  }
  turn_.at_ = turn_.flow().find(*at);
  if (*flow != turn_.flow().name() || turn_.at_ == end_of_flow) {
    return model::fail(Errc::internal, "the execution stands at the Node " + *at +
                                           " of the Flow '" + *flow +
                                           "', which is not in the version that it runs");
  }
  turn_.outputs_made_ = *outputs;
  turn_.calls_made_ = *calls;
  turn_.turns_ = *turns;
  turn_.follow_ups_made_ = count_of(state, "followUps").value_or(0);
  turn_.follow_ups_settled_ = member(state, "followUpsSettled") != nullptr;
  turn_.input_object_ = std::move(state["input"]);
  return {};
}

void TurnRunner::make_input_object() {
  const auto& endpoint = turn_.input_.endpoint;
  // Always an object: `!input.data.orderId` is then true for an input without data.
  turn_.input_object_ = {{"text", event().text.value_or("")},
                         {"data", event().data.is_null() ? json::object() : event().data},
                         {"slots", json::object()},
                         {"sessionId", event().session.session_id},
                         {"userId", event().session.user_id},
                         {"URLToken", endpoint.url_token},
                         {"channel", endpoint.name},
                         {"currentTime", iso_time(turn_.input_.now)},
                         {"execution", turn_.executions_},
                         {"traceId", event().trace_id},
                         {"inputId", event().id},
                         {"source", source_name(event().type)}};
}

Result<void> TurnRunner::count_visit() {
  const Limits& limits = turn_.limits();
  if (++nodes_run_ > limits.nodes_per_turn) {
    return turn_.failure(Errc::too_large, "more than " + std::to_string(limits.nodes_per_turn) +
                                              " Nodes in one Turn");
  }
  if (++visits_[static_cast<std::size_t>(turn_.at_)] > limits.visits_per_node) {
    return turn_.failure(
        Errc::too_large,
        "runs more than " + std::to_string(limits.visits_per_node) + " times in one Turn");
  }
  return {};
}

// Follows the Steps, `step` first, which the Node at `at_` gave, until one ends the Turn.
Result<void> TurnRunner::advance(Step step) {
  while (true) {
    NodeIndex next = end_of_flow;
    if (std::holds_alternative<Continue>(step)) {
      next = turn_.here().next;
    } else if (const auto* jump = std::get_if<Jump>(&step)) {
      next = jump->to;
    } else if (std::holds_alternative<Wait>(step)) {
      turn_.waits_at_ = turn_.here().address;
      turn_.effects_.execution_ended = true;
      return {};
    } else if (auto* call = std::get_if<CallUpstream>(&step)) {
      return suspend(std::move(call->http), std::nullopt);
    } else if (const auto* sleep = std::get_if<Sleep>(&step)) {
      return suspend(std::nullopt, turn_.input_.now + sleep->duration);
    }
    turn_.node_state_ = nullptr;
    if (next == end_of_flow) {  // after the last Node, or by Stop
      turn_.effects_.execution_ended = true;
      return {};
    }
    turn_.at_ = next;
    if (auto counted = count_visit(); !counted) return counted;
    auto result = turn_.here().node->run(turn_);
    if (!result) return model::fail(result.error());
    step = std::move(*result);
  }
}

Result<void> TurnRunner::check_call(const model::HttpCall& call) const {
  std::size_t size = call.url.size() + call.body.size();
  for (const auto& [name, value] : call.headers) size += name.size() + value.size();
  if (size <= turn_.limits().call_bytes) return {};
  return turn_.failure(Errc::too_large, "a call of more than " +
                                            std::to_string(turn_.limits().call_bytes) + " bytes");
}

Result<void> TurnRunner::suspend(std::optional<model::HttpCall> http,
                                 std::optional<model::Timestamp> due_at) {
  turn_.node_state_ = nullptr;
  model::Execution& execution = turn_.execution_;
  // From the input's id and a counter: a rerun asks for the same call, under the same key.
  execution.pending_call_id = execution.input_id + "-c" + std::to_string(++turn_.calls_made_);
  if (http) {
    if (auto good = check_call(*http); !good) return good;
    http->idempotency_key = execution.pending_call_id;
  }
  execution.state = {{"v", state_format},
                     {"flow", turn_.flow().name()},
                     {"at", turn_.here().address},
                     {"input", std::move(turn_.input_object_)},
                     {"outputs", turn_.outputs_made_},
                     {"calls", turn_.calls_made_},
                     {"turns", turn_.turns_}};
  if (turn_.follow_ups_made_ > 0) execution.state["followUps"] = turn_.follow_ups_made_;
  if (turn_.follow_ups_settled_) execution.state["followUpsSettled"] = true;
  turn_.effects_.call = model::PendingCall{.id = execution.pending_call_id,
                                           .session = session().key,
                                           .trace_id = execution.trace_id,
                                           .http = std::move(http),
                                           .due_at = due_at};
  session().execution = std::move(execution);
  return {};
}

// The user has had his answer: from now on his silence counts.
void TurnRunner::arm_journey() {
  const auto& input = turn_.input_;
  const auto& journey = input.assets.journey;
  if (!turn_.effects_.execution_ended || turn_.execution_.source != EventType::user_message ||
      turn_.follow_ups_settled_ || !journey || input.endpoint.follow_up_flow_id.empty()) {
    return;
  }
  model::FollowUp made;
  made.due_at = past_quiet_hours(journey->quiet_hours, event().accepted_at + journey->after);
  if (!turn_.follow_up_counts_.allow(*journey, made.due_at)) return;
  made.id = turn_.execution_.input_id + "-f0";
  made.session = session().key;
  made.trace_id = turn_.execution_.trace_id;
  if (journey->expires_after) {
    made.plan.expires_at = event().accepted_at + *journey->expires_after;
    if (made.due_at >= *made.plan.expires_at) return;  // the quiet hours outlast it
  }
  made.plan.flow_id = input.endpoint.follow_up_flow_id;
  made.plan.of_journey = true;
  turn_.effects_.follow_ups.push_back(std::move(made));
}

void TurnRunner::save_flow_state() {
  json state = {{"v", state_format}, {"executions", turn_.executions_}};
  if (!turn_.once_marks_.empty()) state["once"] = std::move(turn_.once_marks_);
  const bool goes_on = session().busy() || !turn_.waits_at_.empty();
  if (turn_.is_follow_up_flow_ && goes_on) {
    state["behind"] = std::move(turn_.behind_);
  } else if (!turn_.behind_.is_null()) {
    state["waiting"] = std::move(turn_.behind_);
  }
  if (!turn_.waits_at_.empty()) {
    json& waiting = state["waiting"];
    waiting = {{"flow", turn_.flow().name()}, {"at", std::move(turn_.waits_at_)}};
    if (!turn_.node_state_.is_null()) waiting["state"] = std::move(turn_.node_state_);
  }
  if (turn_.follow_up_counts_.session > 0) {
    state["followUps"] = to_json(turn_.follow_up_counts_);
  }
  session().flow_state = std::move(state);
}

Result<model::Effects> run_turn(TurnInput input) {
  return TurnRunner(std::move(input)).run();
}

bool starts_afresh(const model::Session& session, const model::Endpoint& endpoint,
                   model::Timestamp accepted_at) {
  if (session.last_activity_at == model::Timestamp{}) return true;
  return endpoint.session_expiry.count() > 0 &&
         accepted_at - session.last_activity_at > endpoint.session_expiry;
}

model::Effects failure_effects(model::Session session, const model::Endpoint& endpoint,
                               const model::Event& event, model::Timestamp now) {
  model::Effects effects;
  effects.execution_ended = true;
  std::string input_id = event.id;
  std::string trace_id = event.trace_id;
  if (is_input(event.type)) {
    if (event.type != EventType::follow_up && starts_afresh(session, endpoint, event.accepted_at)) {
      reset(session, event.accepted_at);
    }
    session.last_activity_at = std::max(session.last_activity_at, event.accepted_at);
    session.key = event.session;
  } else if (session.execution) {
    input_id = session.execution->input_id;
    trace_id = session.execution->trace_id;
  }
  session.execution.reset();
  if (!endpoint.error_text.empty()) {
    model::Output output;
    output.id = input_id + "-error";
    output.seq = ++session.last_output_seq;
    output.input_id = std::move(input_id);
    output.text = endpoint.error_text;
    output.trace_id = std::move(trace_id);
    output.created_at = now;
    effects.outputs.push_back(std::move(output));
  }
  effects.session = std::move(session);
  return effects;
}

model::Effects notify_effects(model::Session session, const model::Event& event,
                              model::Timestamp now) {
  model::Effects effects;
  if (session.started_at == model::Timestamp{}) session.started_at = event.accepted_at;
  model::Output output;
  output.id = event.id + "-1";
  output.seq = ++session.last_output_seq;
  output.input_id = event.id;
  output.text = event.text.value_or("");
  output.data = event.data;
  output.trace_id = event.trace_id;
  output.created_at = now;
  effects.outputs.push_back(std::move(output));
  effects.session = std::move(session);
  return effects;
}

}  // namespace conversed::flows
