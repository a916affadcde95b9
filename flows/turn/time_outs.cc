// Time-outs of questions: the ids of their timers, and the Turn of a question without an answer.
#include "flows/turn/time_outs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "flows/json_members.h"
#include "flows/turn/turn_runner.h"

namespace conversed::flows {
namespace {

using model::Errc;
using nlohmann::json;

constexpr std::array<const char*, 2> places{"waiting", "behind"};
constexpr std::string_view mark = "-w";

// The timer of the question that waits at the place; empty if there is none.
std::string timer_at(const json& flow_state, const char* place) {
  const json* waiting = find_member(flow_state, place);
  const std::string* timer = waiting == nullptr ? nullptr : find_text(*waiting, "timer");
  return timer == nullptr ? std::string() : *timer;
}

}  // namespace

std::vector<std::string> time_outs_of(const model::Session& session) {
  std::vector<std::string> ids;
  for (const char* place : places) {
    if (auto id = timer_at(session.flow_state, place); !id.empty()) ids.push_back(std::move(id));
  }
  return ids;
}

bool waits_for_time_out(const model::Session& session, const std::string& id) {
  return std::ranges::any_of(places, [&](const char* place) {
    return !id.empty() && timer_at(session.flow_state, place) == id;
  });
}

bool is_time_out_behind(const model::Session& session, const std::string& id) {
  return !id.empty() && timer_at(session.flow_state, "behind") == id;
}

void forget_time_out(json& flow_state, const std::string& id) {
  for (const char* place : places) {
    if (!id.empty() && timer_at(flow_state, place) == id) flow_state[place].erase("timer");
  }
}

std::string time_out_id(const model::Execution& execution) {
  std::string_view root = execution.input_id;
  std::uint32_t count = 0;
  if (execution.source == model::EventType::time_out && root.ends_with(model::due_event_suffix)) {
    root.remove_suffix(model::due_event_suffix.size());
    const auto at = root.rfind(mark);
    if (at != std::string_view::npos) {
      const auto number = root.substr(at + mark.size());
      std::from_chars(number.data(), number.data() + number.size(), count);
      root = root.substr(0, at);
    }
  }
  return std::string(root) + std::string(mark) + std::to_string(count + 1);
}

// The waiting question decides. If the newest version of its Flow no longer has it, or not its
// time-out, it waits on for an input.
Result<Step> TurnRunner::enter_time_out() {
  json waiting = std::exchange(waiting_, nullptr);
  const std::string id = event().claim ? event().claim->id : std::string();
  if (!waiting.is_object() || id.empty() || waiting.value("timer", json()) != id) {
    return model::fail(Errc::conflict, "no question waits for this time-out");
  }
  waiting.erase("timer");
  auto restored = restore_frames(waiting, false);
  if (!restored) return model::fail(restored.error());
  if (!*restored || !turn_.here().node->takes_time_out()) {
    start_over();
    turn_.log("the time-out of the Node " + waiting["at"].get_ref<const std::string&>() +
              " of the Flow '" + waiting["flow"].get_ref<const std::string&>() +
              "' has no effect: the Flow no longer has that question with a time-out");
    waiting_ = std::move(waiting);
    return Stop{};
  }
  recall(waiting);
  if (auto counted = count_visit(); !counted) return model::fail(counted.error());
  return turn_.here().node->on_time_out(turn_);
}

// The execution ends. The next input, or the time-out, goes to the Node that runs.
void TurnRunner::wait_for_input(const Wait& wait) {
  turn_.waits_ = true;
  if (!wait.time_out) return;
  if (!kept_time_out_.empty()) {
    time_out_ = std::move(kept_time_out_);
    return;
  }
  model::PendingCall timer;
  timer.id = time_out_ = time_out_id(turn_.execution_);
  timer.session = session().key;
  timer.trace_id = turn_.execution_.trace_id;
  timer.due_at = turn_.input_.now + *wait.time_out;
  timer.is_time_out = true;
  turn_.effects_.time_out = std::move(timer);
}

}  // namespace conversed::flows
