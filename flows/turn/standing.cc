// Reads the state that turn_state.cc writes.
#include "flows/turn/standing.h"

#include <algorithm>
#include <array>
#include <functional>

#include "flows/json_members.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 2> places{"waiting", "behind"};

// The timer of the question that waits at the place. Empty if there is none.
std::string timer_at(const json& flow_state, const char* place) {
  const json* waiting = find_member(flow_state, place);
  const std::string* timer = waiting == nullptr ? nullptr : find_text(*waiting, "timer");
  return timer == nullptr ? std::string() : *timer;
}

// The last time that is over at a place whose timer is one of these.
std::optional<model::Timestamp> last_time(const json& flow_state,
                                          bool (*is_one)(std::string_view)) {
  std::optional<model::Timestamp> last;
  for (const char* place : places) {
    if (!is_one(timer_at(flow_state, place))) continue;
    const auto until = model::from_unix_ms(find_count(flow_state[place], "until").value_or(0));
    last = std::max(last.value_or(until), until);
  }
  return last;
}

std::vector<Standing> standings_at(const json& flow_state, const char* place) {
  const json* waiting = find_member(flow_state, place);
  return waiting == nullptr ? std::vector<Standing>() : standings_of(*waiting, 0);
}

// Whether one of the injects that `collect` Nodes keep fits.
bool any_kept(const json& flow_state, const std::function<bool(const json&)>& fits) {
  const json* memories = find_member(flow_state, "once");
  if (memories == nullptr || !memories->is_object()) return false;
  return std::ranges::any_of(*memories, [&](const json& memory) {
    const json* events = find_member(memory, "events");
    return events != nullptr && events->is_array() && std::ranges::any_of(*events, fits);
  });
}

}  // namespace

std::vector<const json*> frames_of(const json& place) {
  std::vector<const json*> frames;
  if (const json* callers = find_member(place, "callers")) {
    if (!callers->is_array()) return {};
    for (const auto& caller : *callers) frames.push_back(&caller);
  }
  frames.push_back(&place);
  return frames;
}

std::vector<Standing> standings_of(const json& place, std::int64_t own_version) {
  std::vector<Standing> list;
  for (const json* frame : frames_of(place)) {
    const std::string* flow = find_text(*frame, "flow");
    const std::string* at = find_text(*frame, "at");
    if (flow == nullptr || at == nullptr) return {};
    list.push_back({*flow, find_count(*frame, "version").value_or(own_version), *at});
  }
  return list;
}

std::vector<Standing> standings(const json& flow_state,
                                const std::optional<model::Execution>& execution) {
  return execution ? standings_of(execution->state, execution->flow_version)
                   : standings_at(flow_state, "waiting");
}

std::vector<Standing> standings_behind(const json& flow_state) {
  return standings_at(flow_state, "behind");
}

std::vector<std::string> time_outs_of(const model::Session& session) {
  std::vector<std::string> ids;
  for (const char* place : places) {
    if (auto id = timer_at(session.flow_state, place); !id.empty()) ids.push_back(std::move(id));
  }
  return ids;
}

bool waits_for_time_out(const model::Session& session, const std::string& id) {
  return std::ranges::count(time_outs_of(session), id) > 0;
}

bool is_time_out_behind(const model::Session& session, const std::string& id) {
  return !id.empty() && timer_at(session.flow_state, "behind") == id;
}

std::optional<model::Timestamp> waits_for_event_until(const json& flow_state) {
  return last_time(flow_state, is_time_out_of_event);
}

std::optional<model::Timestamp> collects_until(const json& flow_state) {
  return last_time(flow_state, is_time_out_of_burst);
}

bool waits_for_event_behind(const json& flow_state) {
  return is_time_out_of_event(timer_at(flow_state, "behind"));
}

std::string_view time_out_suffix(Wait::For what) {
  if (what == Wait::For::event) return "-e";
  return what == Wait::For::burst ? "-b" : "-w";
}

bool is_time_out_of_event(std::string_view timer_id) {
  return timer_id.ends_with(time_out_suffix(Wait::For::event)) || is_time_out_of_burst(timer_id);
}

bool is_time_out_of_burst(std::string_view timer_id) {
  return timer_id.ends_with(time_out_suffix(Wait::For::burst));
}

bool keeps_event(const json& flow_state, const std::string& event_id) {
  return any_kept(flow_state, [&](const json& kept) {
    const json* event = find_member(kept, "event");
    const std::string* id = event == nullptr ? nullptr : find_text(*event, "id");
    return id != nullptr && *id == event_id;
  });
}

bool keeps_events(const json& flow_state) {
  return any_kept(flow_state, [](const json&) { return true; });
}

void forget_time_out(json& flow_state, const std::string& id) {
  for (const char* place : places) {
    if (!id.empty() && timer_at(flow_state, place) == id) flow_state[place].erase("timer");
  }
}

}  // namespace conversed::flows
