#include "flows/tools/trial.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "flows/turn/standing.h"
#include "store/model/url.h"

namespace conversed::flows::tools {
namespace {

nlohmann::json shown(const model::PendingCall& call) {
  // Paths and queries may hold secrets.
  if (call.http) {
    return {{"method", call.http->method}, {"server", model::authority_of(call.http->url)}};
  }
  return {{"store", call.search->store}, {"query", call.search->text}};
}

model::CallResult refusal() {
  model::CallResult refused;
  refused.error_code = "refused";
  refused.error_message = "a try makes no calls; give their answers";
  return refused;
}

// Limits of one try, because its answer is kept in memory.
constexpr std::size_t most_turns = 60;
constexpr std::size_t most_outputs = 200;
constexpr std::size_t most_lines = 200;
constexpr std::size_t most_bytes = std::size_t{4} << 20;

std::size_t bytes_of(const model::Effects& effects) {
  std::size_t bytes = 0;
  for (const auto& line : effects.log) bytes += line.size();
  for (const auto& output : effects.outputs)
    bytes += output.text.size() + output.data.dump().size();
  if (effects.call) bytes += shown(*effects.call).dump().size();
  return bytes;
}

// Why the Turn is too much for the try; empty: it fits. `bytes` has the Turn's bytes, too.
std::string excess(const Trial& trial, const model::Effects& effects, std::size_t turn,
                   std::size_t bytes) {
  const auto ended = [](std::size_t most, const char* what) {
    return "the try was ended: the Flow " + std::string(what) + " more than " +
           std::to_string(most);
  };
  if (turn > most_turns) return ended(most_turns, "runs") + " Turns";
  if (trial.outputs.size() + effects.outputs.size() > most_outputs) {
    return ended(most_outputs, "says") + " outputs";
  }
  if (trial.log.size() + effects.log.size() > most_lines) {
    return ended(most_lines, "logs") + " lines";
  }
  if (bytes > most_bytes) return ended(most_bytes, "makes") + " bytes of outputs, log and calls";
  return {};
}

}  // namespace

Trial run_trial(TurnInput input, std::vector<model::CallResult> answers) {
  Trial trial;
  TurnPlace place;
  model::Session session = std::move(input.session);
  model::Profile profile = input.profile;
  model::Event event = input.event;
  std::size_t bytes = 0;
  for (std::size_t call = 0;; ++call) {
    auto effects = run_turn({.flow = input.flow,
                             .assets = input.assets,
                             .endpoint = input.endpoint,
                             .session = std::move(session),
                             .profile = profile,
                             .event = event,
                             .now = input.now,
                             .limits = input.limits,
                             .flow_version = input.flow_version,
                             .library = input.library,
                             .is_follow_up_flow = input.is_follow_up_flow,
                             .is_overdue = input.is_overdue,
                             .failed_at = &place});
    if (!effects) {
      trial.error = effects.error().message;
      trial.failed_at = place.node;
      return trial;
    }
    bytes += bytes_of(*effects);
    trial.error = excess(trial, *effects, call + 1, bytes);
    if (!trial.error.empty()) return trial;
    std::ranges::move(effects->notes.nodes, std::back_inserter(trial.nodes));
    std::ranges::move(effects->outputs, std::back_inserter(trial.outputs));
    std::ranges::move(effects->log, std::back_inserter(trial.log));
    session = std::move(effects->session);
    if (effects->profile) profile = std::move(*effects->profile);
    if (!effects->call || effects->call->due_at) break;
    trial.calls.push_back(shown(*effects->call));
    event.type = model::EventType::call_result;
    event.claim.reset();
    event.result = call < answers.size() ? std::move(answers[call]) : refusal();
    event.result->call_id = effects->call->id;
  }
  const auto places = standings(session.flow_state, session.execution);
  if (!places.empty()) trial.waits_at = places.back().at;
  return trial;
}

}  // namespace conversed::flows::tools
