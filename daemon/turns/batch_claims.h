#pragma once

#include <optional>

#include "daemon/turns/batch_draft.h"

// The claims of a batch's events. Each is consumed in the transaction of its event's effects, or of
// the event's move to the inbox.
//
// Invariants:
// - Each time of a schedule has its own claim. The transaction that consumes it also moves the
//   schedule to its next time, so that a restart or a second append neither repeats nor loses a
//   time. All missed times together fire once. Kept by: Schedules.TwiceInOneBatchItHasAnEffectOnce,
//   Schedules.MissedTimesComeOnce.
// - A follow-up's claim is consumed when it runs, not when it enters the inbox. Until then a user's
//   message withdraws the follow-up, even if that message waits in the inbox or is a dead letter.
//   Kept by: FollowUps.OneThatWaitsInTheInboxIsWithdrawnByAMessage.
namespace conversed::daemon {

// Whether the session still waits for the event's call or timer.
[[nodiscard]] bool waits_for(const model::Session& session, const model::Event& event);

struct FoundClaim {
  bool there = false;                         // the event may have effects
  std::optional<model::Schedule> schedule{};  // of its claim
};
// Looks up the claim of a record's event. Errors: those of the store.
[[nodiscard]] model::Result<FoundClaim> find_claim(const BatchDraft& draft,
                                                   const model::Event& event);

// Consumes the claim. A schedule moves to its next time, or ends.
void consume_claim(BatchDraft& draft, const model::Claim& claim,
                   std::optional<model::Schedule> schedule);

}  // namespace conversed::daemon
