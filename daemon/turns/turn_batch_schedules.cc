// What becomes of scheduled injects: each time of a schedule has one effect.
#include <utility>

#include "daemon/timers/timer_clock.h"
#include "daemon/turns/turn_batch_builder.h"
#include "flows/time/schedule_times.h"
#include "store/conversation/schedules.h"

namespace conversed::daemon {

using model::Claim;
using model::Event;
using model::Result;

// Consumes the claim, if it is there: the schedule goes on to its next time, or is over.
Result<bool> TurnBatchBuilder::take_schedule(const Event& event) {
  auto schedule = context_.store.schedules().by_claim(event.claim->id);
  if (!schedule) return model::fail(schedule.error());
  if (!*schedule || (*schedule)->session != input_.key) return false;
  const auto now =
      context_.timer_clock == nullptr ? context_.clock.now() : context_.timer_clock->schedule_now();
  const auto next = flows::next_time(**schedule, now);
  batch_.commit.claims.push_back(*event.claim);
  batch_.commit.schedules_fired.push_back({event.claim->id, next});
  batch_.changes = true;
  if (next) {
    (*schedule)->due_at = *next;
    ++(*schedule)->run;
    ++(*schedule)->fired;
    batch_.after.schedules.push_back(std::move(**schedule));
  }
  return true;
}

// Whether it comes to a conversation that is not active, where the Endpoint takes none. Others are
// asked when they are accepted; nobody accepts a scheduled one before it comes.
bool TurnBatchBuilder::is_too_late(const Event& event) {
  if (!event.claim || event.claim->kind != Claim::Kind::schedule) return false;
  const auto endpoint = context_.assets.endpoint(input_.key.endpoint_id);
  if (!endpoint || !(*endpoint)->active_only) return false;
  if (!flows::starts_afresh(session_, **endpoint, event.accepted_at)) return false;
  batch_.after.log_lines.push_back("the scheduled message " + event.claim->id +
                                   " came to a conversation that is not active, and was dropped");
  return true;
}

}  // namespace conversed::daemon
