#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/timers/timer_clock.h"
#include "daemon/turns/turn_batch.h"
#include "store/store.h"

namespace conversed::daemon {

using EndpointPtr = std::shared_ptr<const model::Endpoint>;

// An unfinished turn batch, which the parts of TurnBatchBuilder share. One thread.
struct BatchDraft {
  const TurnBatchContext& context;
  const TurnBatchInput& input;
  TurnBatch batch{};
  model::Session session{};  // the state after the last Turn
  model::Profile profile{};
  std::chrono::steady_clock::duration spent{};  // time of its Turns

  // The decision about the event in hand, for its receipt.
  struct Step {
    model::Timestamp began_at{};
    std::chrono::steady_clock::duration took{};
    std::string flow{};  // empty: no Flow ran
    std::string flow_id{};
    std::int64_t version = 0;
    std::string node{};                          // where the Turn failed
    std::vector<model::PinnedFlow> flows_run{};  // see flows::TurnInput
    model::TurnNotes notes{};
    bool changes_profile = false;
    std::string_view ended{};  // why nothing was done; empty: something was
    // Size of `follow_ups.added` before the event; later entries are the event's.
    std::size_t follow_ups_before = 0;
  };
  Step step{};

  [[nodiscard]] store::SessionCommit& commit() { return batch.commit; }
  // The session's.
  [[nodiscard]] store::Shard& shard() const { return context.store.of(input.key); }

  // How far the clock of timers is ahead of the wall clock. Turns know the wall clock only.
  [[nodiscard]] std::chrono::milliseconds timer_offset() const {
    return context.timer_clock == nullptr ? std::chrono::milliseconds(0)
                                          : context.timer_clock->offset();
  }
  [[nodiscard]] model::Timestamp timer_now() const {
    return context.timer_clock == nullptr ? context.clock.now() : context.timer_clock->now();
  }
};

inline bool is_notify(model::EventType type) {
  return type == model::EventType::notify;
}

// The facts about an execution's input on which its outputs depend.
struct Speaker {
  std::string input_id;
  model::EventType source = model::EventType::inject;
  bool keyed = false;                              // the answer is kept under its Idempotency-Key
  std::optional<model::Timestamp> answer_until{};  // see model::Execution
  bool resumed = false;  // earlier Turns of the execution may have had outputs

  // For the execution that the input begins.
  [[nodiscard]] static Speaker of(const model::Event& input) {
    const bool keyed = input.claim && input.claim->kind == model::Claim::Kind::keyed_event;
    return {input.id, input.type, keyed, input.answer_until};
  }
  [[nodiscard]] static Speaker of(const model::Execution& execution) {
    return {execution.input_id, execution.source, execution.keyed, execution.answer_until, true};
  }
};

}  // namespace conversed::daemon
