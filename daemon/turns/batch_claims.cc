#include "daemon/turns/batch_claims.h"

#include <algorithm>
#include <utility>

#include "flows/time/schedule_times.h"
#include "flows/turn/standing.h"
#include "store/conversation/answers.h"
#include "store/conversation/calls.h"
#include "store/conversation/dead_letters.h"
#include "store/conversation/follow_ups.h"
#include "store/conversation/schedules.h"
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

bool BatchClaims::is_consumed(const Claim& claim) const {
  const auto& consumed = draft_.batch.commit.claims;
  return std::ranges::find(consumed, claim) != consumed.end();
}

Result<BatchClaims::Found> BatchClaims::find(const Event& event) const {
  const bool is_timer = event.type == EventType::timer || event.type == EventType::time_out;
  if (!event.claim) return Found{!event.result && !is_timer};
  if (is_consumed(*event.claim)) return Found{};
  if (event.claim->kind == Claim::Kind::schedule) {
    auto schedule = draft_.context.store.schedules().by_claim(event.claim->id);
    if (!schedule) return fail(schedule.error());
    if (!*schedule || (*schedule)->session != draft_.input.key) return Found{};
    return Found{true, std::move(*schedule)};
  }
  auto there = is_there(event);
  if (!there) return fail(there.error());
  return Found{*there};
}

Result<bool> BatchClaims::is_there(const Event& event) const {
  const Claim& claim = *event.claim;
  store::Store& store = draft_.context.store;
  switch (claim.kind) {
    case Claim::Kind::pending_call:
    case Claim::Kind::timer:
      if (!waits_for(draft_.session, event)) return false;
      // Operators cancel the timers of questions without touching the session: their rows decide.
      if (event.type == EventType::time_out) return store.calls().waits(claim.id);
      return true;
    case Claim::Kind::dead_letter:
      return is_new_letter(claim.id);
    case Claim::Kind::follow_up:
      return follow_up_waits(claim.id);
    case Claim::Kind::keyed_event:
    case Claim::Kind::schedule:
      break;
  }
  auto consumed = store.answers().claimed(claim.id);
  if (!consumed) return fail(consumed.error());
  return !*consumed;
}

Result<bool> BatchClaims::is_new_letter(const std::string& id) const {
  auto letter = draft_.context.store.dead_letters().get(draft_.input.key.project_id, id);
  if (!letter && letter.error().code != Errc::not_found) return fail(letter.error());
  return letter && letter->state == store::DeadLetterState::fresh;
}

Result<bool> BatchClaims::follow_up_waits(const std::string& id) const {
  if (draft_.batch.commit.follow_ups.cancelled) return false;
  if (is_consumed({Claim::Kind::follow_up, id})) return false;
  return draft_.context.store.follow_ups().waits(id);
}

void BatchClaims::consume(const Claim& claim, std::optional<model::Schedule> schedule) {
  draft_.commit().claims.push_back(claim);
  if (!schedule) return;
  const auto* timers = draft_.context.timer_clock;
  const auto now = timers == nullptr ? draft_.context.clock.now() : timers->schedule_now();
  const auto next = flows::next_time(*schedule, now);
  draft_.commit().schedules_fired.push_back({claim.id, next});
  if (!next) return;
  schedule->due_at = *next;
  ++schedule->run;
  ++schedule->fired;
  draft_.batch.after.schedules.push_back(*std::move(schedule));
}

}  // namespace conversed::daemon
