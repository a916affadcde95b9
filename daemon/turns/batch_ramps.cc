#include "daemon/turns/batch_ramps.h"

#include <algorithm>

namespace conversed::daemon {

using model::PinnedFlow;

void count_in_ramps(BatchDraft& draft, const model::ProjectAssets& assets,
                    const std::vector<PinnedFlow>& flows_run,
                    const std::optional<PinnedFlow>& failed) {
  if (assets.ramps.empty()) return;
  auto counted = flows_run;
  // A Turn may fail before its first Node.
  if (failed && std::ranges::find(counted, *failed) == counted.end()) counted.push_back(*failed);
  for (const auto& flow : counted) {
    const auto id = assets.flow_ids.find(flow.name);
    if (id == assets.flow_ids.end()) continue;
    const auto found = assets.ramps.find(id->second);
    if (found == assets.ramps.end()) continue;
    const model::Ramp& ramp = found->second;
    const bool is_ramped = flow.version == ramp.version;
    if (!is_ramped && flow.version != ramp.stable_version) continue;
    using Version = store::RampUse::Version;
    draft.commit().ramps.push_back({.ramp_id = ramp.id,
                                    .version = is_ramped ? Version::ramped : Version::stable,
                                    .turns = 1,
                                    .failures = failed == flow ? 1 : 0});
  }
}

std::optional<PinnedFlow> met_failed_call(const model::Event& event,
                                          const std::vector<PinnedFlow>& flows_run) {
  if (!event.result || event.result->error_code.empty() || flows_run.empty()) return std::nullopt;
  return flows_run.front();
}

}  // namespace conversed::daemon
