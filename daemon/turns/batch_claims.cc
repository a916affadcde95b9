#include "daemon/turns/batch_claims.h"

#include <algorithm>
#include <utility>

#include "flows/time/schedule_times.h"
#include "flows/turn/standing.h"
#include "store/conversation/answers.h"
#include "store/conversation/calls.h"
#include "store/conversation/dead_letters.h"
#include "store/conversation/schedules.h"
#include "store/conversation/timers.h"
#include "store/store.h"

namespace conversed::daemon {

using model::Claim;
using model::Errc;
using model::Event;
using model::EventType;
using model::fail;
using model::Result;

bool waits_for(const model::Session& session, const Event& event) {
  const std::string& id = event.claim->id;
  if (event.type == EventType::time_out) return flows::waits_for_time_out(session, id);
  return session.execution && session.execution->pending_call_id == id;
}

namespace {

bool is_consumed(const BatchDraft& draft, const Claim& claim) {
  const auto& consumed = draft.batch.commit.claims;
  return std::ranges::find(consumed, claim) != consumed.end();
}

Result<bool> is_new_letter(const BatchDraft& draft, const std::string& id) {
  auto letter = draft.shard().dead_letters().get(draft.input.key.project_id, id);
  if (!letter && letter.error().code != Errc::not_found) return fail(letter.error());
  return letter && letter->state == store::DeadLetterState::fresh;
}

// Whether the follow-up still waits, as of the batch's last Turn.
Result<bool> follow_up_waits(const BatchDraft& draft, const std::string& id) {
  if (draft.batch.commit.follow_ups.cancelled) return false;
  if (is_consumed(draft, {Claim::Kind::follow_up, id})) return false;
  return draft.shard().timers().follow_up_waits(id);
}

Result<bool> is_there(const BatchDraft& draft, const Event& event) {
  const Claim& claim = *event.claim;
  switch (claim.kind) {
    case Claim::Kind::pending_call:
    case Claim::Kind::timer:
      if (!waits_for(draft.session, event)) return false;
      // An operator may cancel a question's timer without a change of the session. So the timer's
      // row decides.
      if (event.type == EventType::time_out) return draft.shard().calls().waits(claim.id);
      return true;
    case Claim::Kind::dead_letter:
      return is_new_letter(draft, claim.id);
    case Claim::Kind::follow_up:
      return follow_up_waits(draft, claim.id);
    case Claim::Kind::keyed_event:
    case Claim::Kind::schedule:
      break;
  }
  auto consumed = draft.shard().answers().claimed(claim.id);
  if (!consumed) return fail(consumed.error());
  return !*consumed;
}

}  // namespace

Result<FoundClaim> find_claim(const BatchDraft& draft, const Event& event) {
  const bool is_timer = event.type == EventType::timer || event.type == EventType::time_out;
  if (!event.claim) return FoundClaim{!event.result && !is_timer};
  if (is_consumed(draft, *event.claim)) return FoundClaim{};
  if (event.claim->kind == Claim::Kind::schedule) {
    auto schedule = draft.shard().schedules().by_claim(event.claim->id);
    if (!schedule) return fail(schedule.error());
    if (!*schedule || (*schedule)->session != draft.input.key) return FoundClaim{};
    return FoundClaim{true, std::move(*schedule)};
  }
  auto there = is_there(draft, event);
  if (!there) return fail(there.error());
  return FoundClaim{*there};
}

void consume_claim(BatchDraft& draft, const Claim& claim, std::optional<model::Schedule> schedule) {
  draft.commit().claims.push_back(claim);
  if (!schedule) return;
  const auto* timers = draft.context.timer_clock;
  const auto now = timers == nullptr ? draft.context.clock.now() : timers->schedule_now();
  const auto next = flows::next_time(*schedule, now);
  draft.commit().schedules_fired.push_back({claim.id, next});
  if (!next) return;
  schedule->due_at = *next;
  ++schedule->run;
  ++schedule->fired;
  draft.batch.after.schedules.push_back(*std::move(schedule));
}

}  // namespace conversed::daemon
