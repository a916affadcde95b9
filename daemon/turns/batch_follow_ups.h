#pragma once

#include <cstdint>
#include <string>

#include "daemon/turns/batch_outputs.h"

namespace conversed::api {
struct CompiledFlow;
}

namespace conversed::daemon {

// Follow-ups of a batch: each waits in the store until it runs or a user's message withdraws it.
// Kept by: FollowUpHistories.EveryFollowUpThatHasToComeComesOnceAndNoOther.
class BatchFollowUps {
 public:
  // Both must outlive it.
  BatchFollowUps(BatchDraft& draft, BatchOutputs& outputs) : draft_(draft), outputs_(outputs) {}

  // All that waited before are withdrawn, with outputs of theirs whose delivery has not begun.
  void cancel();
  // A follow-up's Flow that waits for a call, or sleeps, ends: the user has answered.
  void abandon_running();

  enum class Outcome : std::uint8_t { runs_flow, settled };
  // Begins a follow-up whose claim is consumed. `settled`: it was said, postponed or dropped.
  [[nodiscard]] model::Result<Outcome> take_up(const model::Event& event,
                                               const EndpointPtr& endpoint,
                                               const model::ProjectAssets& assets);

  // The Flow of a follow-up that an input goes on with; empty: the Endpoint's goes on, or starts.
  [[nodiscard]] std::string waiting_flow(const model::Event& event,
                                         const model::Endpoint& endpoint) const;
  // Whether a follow-up's Flow runs, or goes on. It may be the Endpoint's own Flow.
  [[nodiscard]] bool runs_flow(const model::Event& event, const model::Endpoint& endpoint,
                               const api::CompiledFlow& flow) const;

 private:
  [[nodiscard]] model::Result<bool> is_within_quota(const model::Endpoint& endpoint,
                                                    const model::ProjectAssets& assets) const;

  BatchDraft& draft_;
  BatchOutputs& outputs_;
};

}  // namespace conversed::daemon
