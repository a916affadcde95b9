#pragma once

#include <cstdint>
#include <string>

#include "daemon/turns/batch_draft.h"

namespace conversed::api {
struct CompiledFlow;
}

// Follow-ups of a batch: each waits in the store until it runs or a user's message withdraws it.
// Kept by: FollowUpHistories.EveryExpectedFollowUpComesOnceAndNoOther.
namespace conversed::daemon {

// Withdraws all waiting follow-ups, and the outputs of follow-ups whose delivery has not begun.
void cancel_follow_ups(BatchDraft& draft);
// Ends a follow-up's Flow that waits for a call or sleeps, since the user has answered.
void abandon_follow_up(BatchDraft& draft);

enum class TakenUp : std::uint8_t { runs_flow, settled };
// Begins a follow-up whose claim is consumed. `settled`: its text was sent, or it was postponed or
// dropped.
[[nodiscard]] model::Result<TakenUp> take_up(BatchDraft& draft, const model::Event& event,
                                             const EndpointPtr& endpoint,
                                             const model::ProjectAssets& assets);

// Whether the event starts or continues a follow-up's Flow. That may be the Endpoint's own Flow.
[[nodiscard]] bool runs_follow_up(const model::Session& session, const model::Event& event,
                                  const model::Endpoint& endpoint, const api::CompiledFlow& flow);

}  // namespace conversed::daemon
