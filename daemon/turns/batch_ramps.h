#pragma once

#include <optional>
#include <vector>

#include "daemon/turns/batch_draft.h"
#include "store/model/assets.h"

namespace conversed::daemon {

// Counts a Turn for each of its Flows that is in a ramp. `failed`: the Flow whose Node failed. The
// counts become durable with the Turn. Kept by: FlowRampTurns.EachTurnIsCountedOnceForItsVersion.
void count_in_ramps(BatchDraft& draft, const model::ProjectAssets& assets,
                    const std::vector<model::PinnedFlow>& flows_run,
                    const std::optional<model::PinnedFlow>& failed);

// For a Turn that ended well: the Flow whose Node called, if the call has failed.
[[nodiscard]] std::optional<model::PinnedFlow> met_failed_call(
    const model::Event& event, const std::vector<model::PinnedFlow>& flows_run);

}  // namespace conversed::daemon
