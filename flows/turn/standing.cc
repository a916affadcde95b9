// Reads the stored state (see turn_state.cc) for tools.
#include "flows/turn/standing.h"

#include <nlohmann/json.hpp>

namespace conversed::flows {
namespace {

using nlohmann::json;

bool read_frame(const json& stored, std::int64_t own_version, std::vector<Standing>& list) {
  if (!stored.is_object()) return false;
  const auto flow = stored.find("flow");
  const auto at = stored.find("at");
  if (flow == stored.end() || !flow->is_string() || at == stored.end() || !at->is_string()) {
    return false;
  }
  // A frame of the Endpoint's Flow has no version of its own: the execution has it.
  const auto version = stored.find("version");
  const bool has_version = version != stored.end() && version->is_number_integer();
  list.push_back({.flow = flow->get<std::string>(),
                  .version = has_version ? version->get<std::int64_t>() : own_version,
                  .at = at->get<std::string>()});
  return true;
}

std::vector<Standing> read_frames(const json& state, std::int64_t own_version) {
  std::vector<Standing> list;
  if (!state.is_object()) return {};
  if (const auto callers = state.find("callers"); callers != state.end()) {
    for (const auto& caller : *callers) {
      if (!read_frame(caller, own_version, list)) return {};
    }
  }
  if (!read_frame(state, own_version, list)) return {};
  return list;
}

}  // namespace

std::vector<Standing> standings(const json& flow_state,
                                const std::optional<model::Execution>& execution) {
  if (execution) return read_frames(execution->state, execution->flow_version);
  if (!flow_state.is_object()) return {};
  const auto waiting = flow_state.find("waiting");
  return waiting == flow_state.end() ? std::vector<Standing>() : read_frames(*waiting, 0);
}

std::vector<Standing> standings_behind(const json& flow_state) {
  if (!flow_state.is_object()) return {};
  const auto behind = flow_state.find("behind");
  return behind == flow_state.end() ? std::vector<Standing>() : read_frames(*behind, 0);
}

}  // namespace conversed::flows
