// How one batch is built (see turn_batch.h): turn_batch.cc has what goes well,
// turn_batch_answers.cc who gets what is said, turn_batch_failures.cc what becomes of events that
// have no effects.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/live/assets_cache.h"
#include "daemon/turns/turn_batch.h"
#include "store/conversation/sessions.h"
#include "store/store.h"

namespace conversed::daemon {

using EndpointPtr = std::shared_ptr<const model::Endpoint>;
using FlowPtr = std::shared_ptr<const api::CompiledFlow>;

using model::is_input;

inline bool is_notify(model::EventType type) {
  return type == model::EventType::notify;
}

// Whether the fault is the store's, and trying again later helps.
inline bool is_store_failure(const model::Error& error) {
  return error.code == model::Errc::unavailable || error.code == model::Errc::timed_out;
}

// The execution that an input begins, as far as the input says.
[[nodiscard]] model::Execution begun_by(const model::Event& event);

// Builds one batch. A Turn that fails has no effects, but the session it was given is gone by then:
// so the failure is noted in `failed` and the batch is built again from the store; Turns are pure,
// so it comes to the same.
//
// Invariants:
// - Each output goes one way. What the execution of a user's message says is its client's answer
//   until the message is cut; everything else is a delivery to the webhook. A Turn past the
//   deadline cuts its message in the transaction of its outputs, since the daemon whose client
//   waits may be gone. Kept by: TurnBatchAnswersTest.PastItsDeadlineAMessageIsCutByTheTurnItself,
//   TurnBatchAnswersTest.WhatIsSaidBehindACutIsTheWebhooks.
// - Each time of a schedule has its own claim. The transaction that consumes it also moves the
//   schedule to its next time, so that a restart or a second append neither doubles nor loses one.
//   Missed times come once. Kept by: Schedules.TwiceInOneBatchItHasAnEffectOnce,
//   Schedules.TimesThatWereMissedComeOnce.
// - A follow-up's claim is consumed when it runs, not when it enters the inbox. Until then a user's
//   message withdraws it, even if that message waits in the inbox or is a dead letter.
//   Kept by: FollowUps.OneThatWaitsInTheInboxIsTakenBackByAMessage.
class TurnBatchBuilder {
 public:
  TurnBatchBuilder(const TurnBatchContext& context, TurnBatchInput& input)
      : context_(context), input_(input) {}

  // Nothing: a Turn has failed, build again; or the batch has to be built alone.
  model::Result<std::optional<TurnBatch>> build();
  [[nodiscard]] bool wants_alone() const { return wants_alone_; }

 private:
  model::Result<void> load();
  model::Result<bool> has_had_effects(const model::Position& at) const;
  model::Result<void> take(const queue::LogRecord& record);
  // Whether the batch has made, or found, anything of the session before a record.
  enum class Traces : std::uint8_t { none, some };
  model::Result<void> take_new(const queue::LogRecord& logged, Traces so_far);
  model::Result<void> drain();
  bool is_of_the_future(const model::Event& event) const;
  void bring_to_now(model::Event& event) const;
  model::Result<bool> holds_claim(const model::Event& event);
  model::Result<void> start(const model::Event& event, const store::InboxEvent& parts,
                            const std::optional<model::Position>& at);
  model::Result<void> run(const model::Event& event);
  model::Result<void> say(const model::Event& event, const EndpointPtr& endpoint);
  model::Result<FlowPtr> flow_for(const model::Event& event, const model::Endpoint& endpoint,
                                  const model::ProjectAssets& assets);
  model::Result<void> apply(const model::Event& event, model::Effects effects,
                            const EndpointPtr& endpoint, const FlowPtr& flow);
  // Who gets what is said: turn_batch_answers.cc.
  model::Result<void> settle_outputs(const model::Execution& execution, bool ended, bool resumed,
                                     std::vector<model::Output> outputs,
                                     const EndpointPtr& endpoint);
  model::Result<void> settle_failure(const model::Execution& execution, bool resumed);
  model::Result<bool> takes_answers(const model::Execution& execution, std::int64_t said_before);
  model::Result<void> come_to_rest(const model::Execution& execution, bool answers, bool resumed,
                                   const std::vector<model::Output>& outputs);
  model::Result<api::Answer> answer_of(const model::Execution& execution, bool resumed,
                                       const std::vector<model::Output>& outputs);
  model::Result<void> bury(const model::Event& event, const store::InboxEvent& parts,
                           const std::string& reason);
  model::Result<void> bury_waiting(const model::Event& event, const store::InboxEvent& parts,
                                   const std::string& reason);
  model::Result<void> bury_damaged(const model::Event& event, const store::InboxEvent& parts);
  void bury_unreadable(const store::InboxEvent& parts, const std::string& reason);
  // Whether what names the record and its event can be stored as it is.
  static bool has_names(const queue::Record& record);
  // Follow-ups: turn_batch_follow_ups.cc.
  enum class FollowUp : std::uint8_t { runs, settled };
  model::Result<bool> follow_up_waits(const std::string& id) const;
  model::Result<FollowUp> take_up(const model::Event& event, const EndpointPtr& endpoint,
                                  const model::ProjectAssets& assets);
  model::Result<bool> is_within_quota(const model::Endpoint& endpoint,
                                      const model::ProjectAssets& assets) const;
  void cancel_follow_ups();
  void abandon_follow_up();
  bool runs_follow_up_flow(const model::Event& event, const model::Endpoint& endpoint,
                           const api::CompiledFlow& flow) const;
  // How far the clock of what waits for a while is ahead of `now` of Turns.
  std::chrono::milliseconds timer_offset() const;
  model::Timestamp timer_now() const;
  // Time-outs of questions: turn_batch_time_outs.cc.
  bool waits_for(const model::Event& event) const;
  model::Result<bool> holds_timer(const model::Event& event) const;
  bool begins_afresh(const model::Event& event, const model::Endpoint& endpoint) const;
  std::string waiting_follow_up_flow(const model::Event& event,
                                     const model::Endpoint& endpoint) const;
  void settle_time_outs();
  // Scheduled injects: turn_batch_schedules.cc.
  model::Result<bool> take_schedule(const model::Event& event);
  bool is_too_late(const model::Event& event);
  void to_inbox(const queue::LogRecord& logged);
  void count_use(const model::Event& event);
  void close();
  void follow_commit();

  [[nodiscard]] bool can_drain() const;
  struct Waiting {
    store::InboxEvent parts;
    std::optional<model::Position> at;  // in the log, if it has come with this batch
  };
  Waiting oldest_in_inbox();
  // Set by `take` on entry: arrivals of a busy session, or behind a non-empty inbox, wait there.
  // Nothing waits for what is damaged.
  [[nodiscard]] bool must_wait() const {
    return damage_.empty() &&
           (input_.spill || session_.busy() || session_.inbox_size > 0 || !may_start());
  }
  // Where a single event is looked for, a second one waits for the next batch; so it does behind
  // Turns that took long. The first one starts in any case, so that there is an end to it.
  [[nodiscard]] bool may_start() const {
    if (batch_.first_started.empty()) return true;
    return !input_.one_start && !input_.alone && input_.spent < context_.slice;
  }

  const TurnBatchContext& context_;
  TurnBatchInput& input_;
  TurnBatch batch_;
  model::Session session_;
  model::Profile profile_;
  std::vector<store::InboxEvent> stored_inbox_;
  std::vector<std::string> time_outs_;     // that the stored session waits for
  std::size_t drained_ = 0;                // of them
  std::vector<model::Position> added_at_;  // of what this batch puts behind them
  std::size_t added_drained_ = 0;
  model::Execution running_;     // the session's, as the Turn that runs found it
  std::string damage_;           // of what is stored; nothing runs on it
  bool execution_lost_ = false;  // it can't be read: only the store knows what it waits for
  bool inbox_changed_ = false;
  bool again_ = false;
  bool wants_alone_ = false;
};

}  // namespace conversed::daemon
