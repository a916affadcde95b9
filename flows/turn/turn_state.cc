// Reads and writes the state of the stored session. Wrong shapes are errors, never exceptions.
#include <algorithm>
#include <utility>

#include "flows/json_members.h"
#include "flows/turn/standing.h"
#include "flows/turn/turn_runner.h"

namespace conversed::flows {
namespace {

using model::Errc;
using model::EventType;
using nlohmann::json;

// The format of both states below. Later versions of the daemon read them, too.
constexpr int state_format = 1;

tl::unexpected<model::Error> unreadable(const char* what) {
  return model::fail(Errc::internal, std::string("the ") + what + "'s stored state can't be read");
}

// Whether the list has the shape of entries from `Turn::add_keyphrase`.
bool are_entries(const json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const json& item) {
           return find_text(item, "main") != nullptr;
         });
}

}  // namespace

bool are_events(const json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const json& item) {
           return find_count(item, "n") && find_count(item, "at") && find_member(item, "event");
         });
}

json state_after_reset(const json& flow_state) {
  auto counts = counts_from(flow_state);
  if (!counts || counts->today == 0) return nullptr;
  counts->session = 0;
  return {{"v", state_format}, {"executions", 0}, {"followUps", to_json(*counts)}};
}

Result<void> TurnRunner::restore_flow_state() {
  if (!session().context.is_object() || !input_.profile.data.is_object()) {
    return unreadable("session");
  }
  json& state = session().flow_state;
  if (state.is_null()) return {};
  const auto executions = find_count(state, "executions");
  const auto counts = counts_from(state);
  if (find_count(state, "v") != state_format || !executions || !counts) {
    return unreadable("session");
  }
  executions_ = *executions;
  follow_up_counts_ = *counts;
  if (auto done = restore_memories(state); !done) return done;
  return restore_waiting(state);
}

// Restores the place where the next input continues. A follow-up Flow does not change the place
// where the Endpoint's Flow waits. That place is `behind_`, and is restored when the follow-up Flow
// ends.
Result<void> TurnRunner::restore_waiting(json& state) {
  for (const char* place : {"waiting", "behind"}) {
    const json* stored = find_member(state, place);
    if (stored == nullptr) continue;
    if (find_text(*stored, "at") == nullptr || find_text(*stored, "flow") == nullptr) {
      return unreadable("session");
    }
    (place == std::string_view("waiting") ? waiting_ : behind_) = *stored;
  }
  const std::string* follow_up_flow = find_text(state, "followUpFlow");
  if (!input_.is_follow_up_flow) {
    // The follow-up Flow that waited no longer exists, or its execution has failed, or the
    // Endpoint's Flow continues with its event or its time-out.
    if (follow_up_flow != nullptr) waiting_ = std::exchange(behind_, nullptr);
    return {};
  }
  if (follow_up_flow == nullptr) {
    behind_ = std::exchange(waiting_, nullptr);
  } else if (*follow_up_flow != input_.flow.name()) {
    waiting_ = nullptr;  // of two follow-up Flows the later one gets the answer
  }
  return {};
}

Result<void> TurnRunner::restore_memories(json& state) {
  if (const json* once = find_member(state, "once")) {
    if (!once->is_object()) return unreadable("session");
    memory_ = std::move(state["once"]);
  }
  if (const json* added = find_member(state, "keyphrases")) {
    if (!added->is_object() || !std::all_of(added->begin(), added->end(), are_entries)) {
      return unreadable("session");
    }
    keyphrases_ = std::move(state["keyphrases"]);
  }
  if (const json* events = find_member(state, "events")) {
    if (!are_events(*events)) return unreadable("session");
    untaken_ = std::move(state["events"]);
  }
  if (const std::string* name = find_text(state, "state")) state_ = *name;
  if (const std::string* name = find_text(state, "locale")) locale_ = *name;
  return {};
}

Result<bool> TurnRunner::restore_frames(const json& state, bool pinned) {
  std::vector<Frame> restored;
  const auto stored = frames_of(state);
  for (const auto& standing : standings_of(state, 0)) {
    auto frame = look_up(standing.flow, pinned ? standing.version : 0);
    if (!frame && frame.error().code == Errc::not_found) return false;
    if (!frame) return model::fail(frame.error());
    frame->at = frame->flow->find(standing.at);
    if (frame->at == end_of_flow) return false;
    const json& kept = *stored[restored.size()];
    if (!restore_loops(kept, *frame) || !restore_arguments(kept, *frame)) {
      return unreadable("session");
    }
    restored.push_back(std::move(*frame));
  }
  if (restored.empty()) return unreadable("session");
  // If the Endpoint has another Flow now than when the session began, the session starts in the new
  // one, unless it left the Endpoint's Flow for another.
  const bool left = find_member(state, "left") != nullptr;
  if (restored.front().flow != &input_.flow && !left) return false;
  frames_ = std::move(restored);
  show_arguments();
  return true;
}

// If another version has as many loops around the Node as are stored, they correspond in their
// order. Otherwise loops with the same address correspond. A loop that is not stored ends behind
// its Node.
bool TurnRunner::restore_loops(const json& stored, Frame& frame) {
  const json* loops = find_member(stored, "loops");
  if (loops == nullptr) return true;
  if (!loops->is_array()) return false;
  std::vector<NodeIndex> around;
  for (std::size_t i = 0; i < frame.flow->slots().size(); ++i) {
    if (frame.flow->slots()[i].node->repeats(frame.at)) around.push_back(NodeIndex(i));
  }
  for (std::size_t i = 0; i < loops->size(); ++i) {
    const std::string* address = find_text((*loops)[i], "at");
    const auto next = find_count((*loops)[i], "next");
    const json* list = find_member((*loops)[i], "list");
    if (address == nullptr || !next || list == nullptr || !list->is_array()) return false;
    const auto node = around.size() == loops->size() ? around[i] : frame.flow->find(*address);
    if (std::ranges::count(around, node) == 0) continue;
    frame.loops.push_back({node, static_cast<std::size_t>(*next), *list});
  }
  return true;
}

bool TurnRunner::restore_arguments(const json& stored, Frame& frame) {
  const json* arguments = find_member(stored, "arguments");
  if (arguments == nullptr) return true;
  frame.arguments = *arguments;
  return arguments->is_object();
}

Result<void> TurnRunner::restore_execution() {
  execution_ = std::move(*session().execution);
  session().execution.reset();
  waiting_ = nullptr;
  json state = std::move(execution_.state);
  const std::string* flow_name = find_text(state, "flow");
  const std::string* at = find_text(state, "at");
  if (flow_name == nullptr || at == nullptr || !restore_progress(state)) {
    return unreadable("execution");
  }
  auto restored = restore_frames(state, true);
  if (!restored) return model::fail(restored.error());
  if (!*restored) {
    return model::fail(Errc::internal, "the execution stands at the Node " + *at +
                                           " of the Flow '" + *flow_name +
                                           "', which is not in the version that it runs");
  }
  if (const json* stored = find_member(state, "nodeState")) node_state_ = *stored;
  return {};
}

bool TurnRunner::restore_progress(json& state) {
  const auto outputs = find_count(state, "outputs");
  const auto calls = find_count(state, "calls");
  const auto turns = find_count(state, "turns");
  const json* input = find_member(state, "input");
  if (find_count(state, "v") != state_format || !outputs || !calls || !turns || input == nullptr ||
      !input->is_object()) {
    return false;
  }
  outputs_made_ = *outputs;
  calls_made_ = *calls;
  turns_ = *turns;
  follow_ups_made_ = find_count(state, "followUps").value_or(0);
  follow_ups_settled_ = find_member(state, "followUpsSettled") != nullptr;
  input_object_ = std::move(state["input"]);
  input_is_complete_ = true;
  if (!input_object_["slots"].is_object()) input_object_["slots"] = json::object();
  choose_locale();
  return true;
}

// A message, or an inject, may tell the locale. An unknown one changes nothing.
void TurnRunner::note_locale() {
  const bool tells = event().type == EventType::user_message || event().type == EventType::inject;
  const std::string* told = tells ? find_text(event().data, "locale") : nullptr;
  const auto known = matching_locale(told == nullptr ? "" : *told, input_.assets.locales);
  if (!known.empty()) locale_ = known;
  choose_locale();
}

// The current Node's frame, with the frames of its callers below it.
json TurnRunner::frames(bool pinned) const {
  const auto stored = [&](const Frame& frame) {
    json one = {{"flow", frame.flow->name()}, {"at", frame.flow->slot(frame.at).address}};
    // The execution has the version of the Endpoint's Flow.
    if (pinned && frame.flow != &input_.flow) one["version"] = frame.version;
    if (!frame.arguments.empty()) one["arguments"] = frame.arguments;
    for (const auto& each : frame.loops) {
      const auto& address = frame.flow->slot(each.node).address;
      one["loops"].push_back({{"at", address}, {"next", each.next}, {"list", each.list}});
    }
    return one;
  };
  json state = stored(top());
  for (const auto& frame : frames_) {
    if (&frame != &top()) state["callers"].push_back(stored(frame));
  }
  if (frames_.front().flow != &input_.flow) state["left"] = true;
  return state;
}

std::vector<model::PinnedFlow> TurnRunner::pinned_flows() const {
  std::vector<model::PinnedFlow> entered;
  for (const auto& frame : frames_) {
    if (frame.flow == &input_.flow) continue;
    model::PinnedFlow pinned{frame.flow->name(), frame.version};
    if (std::ranges::find(entered, pinned) == entered.end()) entered.push_back(std::move(pinned));
  }
  return entered;
}

json TurnRunner::execution_state() {
  complete_input();
  json state = frames(true);
  state["v"] = state_format;
  state["input"] = std::move(input_object_);
  state["outputs"] = outputs_made_;
  state["calls"] = calls_made_;
  state["turns"] = turns_;
  if (follow_ups_made_ > 0) state["followUps"] = follow_ups_made_;
  if (follow_ups_settled_) state["followUpsSettled"] = true;
  if (!node_state_.is_null()) state["nodeState"] = std::move(node_state_);
  return state;
}

// Drops the oldest injects that exceed the limits.
void TurnRunner::bound_untaken() {
  const Limits& limits = input_.limits;
  std::size_t first = untaken_.size();
  std::size_t bytes = 0;
  while (first > 0 && untaken_.size() - first < limits.untaken_events) {
    bytes += measure(untaken_[first - 1], limits.untaken_event_bytes);
    if (bytes > limits.untaken_event_bytes) break;
    --first;
  }
  for (std::size_t i = 0; i < first; ++i) {
    log("drops the inject " + untaken_[i]["event"].value("id", "") +
        ", which no Node has taken: a session keeps the last " +
        std::to_string(limits.untaken_events) + " of them, in " +
        std::to_string(limits.untaken_event_bytes) + " bytes");
  }
  untaken_.erase(untaken_.begin(), untaken_.begin() + static_cast<std::ptrdiff_t>(first));
}

void TurnRunner::save_flow_state() {
  json state;
  state["v"] = state_format;
  state["executions"] = executions_;
  if (!memory_.empty()) state["once"] = std::move(memory_);
  if (!keyphrases_.empty()) state["keyphrases"] = std::move(keyphrases_);
  if (!untaken_.empty()) {
    bound_untaken();
    state["events"] = std::move(untaken_);
  }
  if (!state_.empty()) state["state"] = std::move(state_);
  if (!locale_.empty()) state["locale"] = std::move(locale_);
  if (follow_up_counts_.today > 0) state["followUps"] = to_json(follow_up_counts_);
  const bool waits = waits_ || !waiting_.is_null();
  if (input_.is_follow_up_flow && (waits || session().busy())) {
    state["followUpFlow"] = input_.flow.name();
    if (!behind_.is_null()) state["behind"] = std::move(behind_);
  } else if (!behind_.is_null()) {
    state["waiting"] = std::move(behind_);
  }
  if (waits_) {
    json& waiting = state["waiting"];
    waiting = frames(false);
    if (!time_out_.empty()) waiting["timer"] = std::move(time_out_);
    if (until_) waiting["until"] = model::to_unix_ms(*until_);
    if (!node_state_.is_null()) waiting["state"] = std::move(node_state_);
    // An agent's tool asks the user. Its later Nodes read its arguments in `input.tool`.
    const auto tool = input_object_.find("tool");
    if (tool != input_object_.end()) waiting["tool"] = std::move(*tool);
  } else if (!waiting_.is_null()) {
    state["waiting"] = std::move(waiting_);
  }
  session().flow_state = std::move(state);
}

}  // namespace conversed::flows
