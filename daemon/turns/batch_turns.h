#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "daemon/turns/batch_follow_ups.h"
#include "daemon/turns/batch_outputs.h"

namespace conversed::daemon {

// Runs events of a batch, one after the other, each on the session that the one before it left.
class BatchTurns {
 public:
  // All must outlive it.
  BatchTurns(BatchDraft& draft, BatchOutputs& outputs, BatchFollowUps& follow_ups)
      : draft_(draft), outputs_(outputs), follow_ups_(follow_ups) {}

  // Why an event can't run; none: it has had its effects. After a failure the draft is of no use:
  // its session may have been moved into the Turn.
  using Failure = std::optional<std::string>;
  // Errors: those of the store.
  [[nodiscard]] model::Result<Failure> run(const model::Event& event);

  // The time that all Turns have taken.
  [[nodiscard]] std::chrono::steady_clock::duration spent() const { return spent_; }

 private:
  using FlowPtr = std::shared_ptr<const api::CompiledFlow>;
  [[nodiscard]] model::Result<Failure> run_turn(const model::Event& event,
                                                const EndpointPtr& endpoint,
                                                const model::ProjectAssets& assets);
  [[nodiscard]] model::Result<void> say(const model::Event& event, const EndpointPtr& endpoint);
  [[nodiscard]] model::Result<FlowPtr> flow_for(const model::Event& event,
                                                const model::Endpoint& endpoint,
                                                const model::ProjectAssets& assets);
  [[nodiscard]] model::Result<void> apply(const Speaker& speaker, model::Effects effects,
                                          const EndpointPtr& endpoint, const FlowPtr& flow);
  void add_waits(model::Effects& effects);

  BatchDraft& draft_;
  BatchOutputs& outputs_;
  BatchFollowUps& follow_ups_;
  std::chrono::steady_clock::duration spent_{};
};

}  // namespace conversed::daemon
