// Reads the stored state (see turn_state.cc) for tools.
#include "flows/turn/standing.h"

#include "flows/json_members.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

bool read_frame(const json& stored, std::int64_t own_version, std::vector<Standing>& list) {
  const std::string* flow = find_text(stored, "flow");
  const std::string* at = find_text(stored, "at");
  if (flow == nullptr || at == nullptr) return false;
  // A frame of the Endpoint's Flow has no version of its own: the execution has it.
  list.push_back({*flow, find_count(stored, "version").value_or(own_version), *at});
  return true;
}

// Of the state, or of one of its members; null: none.
std::vector<Standing> read_frames(const json* state, std::int64_t own_version) {
  std::vector<Standing> list;
  if (state == nullptr) return {};
  if (const json* callers = find_member(*state, "callers")) {
    for (const auto& caller : *callers) {
      if (!read_frame(caller, own_version, list)) return {};
    }
  }
  if (!read_frame(*state, own_version, list)) return {};
  return list;
}

}  // namespace

std::vector<Standing> standings(const json& flow_state,
                                const std::optional<model::Execution>& execution) {
  if (execution) return read_frames(&execution->state, execution->flow_version);
  return read_frames(find_member(flow_state, "waiting"), 0);
}

std::vector<Standing> standings_behind(const json& flow_state) {
  return read_frames(find_member(flow_state, "behind"), 0);
}

}  // namespace conversed::flows
