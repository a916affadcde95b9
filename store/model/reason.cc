#include "store/model/reason.h"

#include <array>
#include <cstddef>

namespace conversed::model {

namespace {

constexpr std::array<ReasonInfo, 20> reasons{{
    {Reason::behind_events, "behindEvents", "earlier events of its session run first",
     "Wait, or see the next line. `conversectl sessions reset` ends the present execution."},
    {Reason::call, "call", "its Flow waits for the answer of a call",
     "Check the upstream. `conversectl sessions reset` gives the call up."},
    {Reason::asleep, "asleep", "its Flow sleeps until a time",
     "Wait, or move the time by `conversectl timers reschedule`."},
    {Reason::question, "question", "its Flow waits for the user's answer",
     "Wait for the user, or end the wait by `conversectl sessions reset`. `conversectl timers "
     "reschedule` moves a time-out."},
    {Reason::inbox_full, "inboxFull", "the inbox of its session is full",
     "Find out below what the session waits for; limits.inbox is the limit."},
    {Reason::partition_without_owner, "partitionWithoutOwner",
     "no daemon owns its session's partition of the log",
     "Start a daemon with the role worker; `conversectl status` shows the owners."},
    {Reason::partition_recovering, "partitionRecovering",
     "after a crash, its session's partition runs some events alone",
     "Wait. Read the log of the daemon that crashed."},
    {Reason::share_used_up, "shareUsedUp", "other sessions of its organisation use all its workers",
     "Find slow Flows of the organisation, or raise `workers`."},
    {Reason::quota, "quota", "the organisation's quota of the month is used up",
     "Raise quota.* in the settings and reload them, or wait for the next month."},
    {Reason::delivery_failing, "deliveryFailing", "its webhook fails",
     "Mend the webhook, then `conversectl deliveries retry`."},
    {Reason::behind_output, "behindOutput", "an earlier output of its session is delivered first",
     "See the next line. `conversectl deliveries drop` gives the earlier output up."},
    {Reason::endpoint_paused, "endpointPaused", "its webhook has failed for long and is paused",
     "Mend the webhook, then `conversectl endpoints resume`."},
    {Reason::quiet_hours, "quietHours", "the project's quiet hours put the follow-up off",
     "Wait, or move it by `conversectl timers reschedule`."},
    {Reason::store_down, "storeDown", "the store can't be written",
     "Look at the disk or the database server: the daemon goes on by itself when it works."},
    {Reason::log_down, "logDown", "the log can't be written",
     "Look at the disk or the brokers: the daemon goes on by itself when it works."},
    {Reason::dead_letter, "deadLetter", "it was given up",
     "Mend the cause, then `conversectl deadletters replay`."},
    {Reason::not_due, "notDue", "its time has not come",
     "Wait, or move it by `conversectl timers reschedule`."},
    {Reason::sending, "sending", "it is being sent, and the webhook has not answered yet",
     "If this lasts, check the receiver: it should answer first and work then."},
    {Reason::behind_jobs, "behindJobs", "no worker has taken the job yet",
     "Wait for other jobs, or start a daemon with the role worker."},
    {Reason::event, "event", "its Flow waits for an event",
     "Inject the event, or wait: a `collect` goes on by itself at the end of its burst. "
     "`conversectl timers reschedule` moves the time-out."},
}};

constexpr std::array of_sessions{Reason::call,
                                 Reason::asleep,
                                 Reason::question,
                                 Reason::inbox_full,
                                 Reason::partition_without_owner,
                                 Reason::partition_recovering,
                                 Reason::share_used_up,
                                 Reason::quota,
                                 Reason::store_down,
                                 Reason::log_down,
                                 Reason::event};
constexpr std::array of_deliveries{Reason::partition_without_owner,
                                   Reason::partition_recovering,
                                   Reason::delivery_failing,
                                   Reason::behind_output,
                                   Reason::endpoint_paused,
                                   Reason::store_down,
                                   Reason::log_down,
                                   Reason::sending};
constexpr std::array of_timers{Reason::asleep,
                               Reason::question,
                               Reason::partition_without_owner,
                               Reason::partition_recovering,
                               Reason::quiet_hours,
                               Reason::store_down,
                               Reason::log_down,
                               Reason::not_due,
                               Reason::event};
constexpr std::array of_jobs{Reason::behind_jobs};

}  // namespace

std::span<const Reason> reasons_of(Listed list) {
  switch (list) {
    case Listed::sessions:
      return of_sessions;
    case Listed::deliveries:
      return of_deliveries;
    case Listed::timers:
      return of_timers;
    case Listed::jobs:
      break;
  }
  return of_jobs;
}

std::span<const ReasonInfo> all_reasons() {
  return reasons;
}

const ReasonInfo& info_of(Reason reason) {
  constexpr auto first = static_cast<std::size_t>(Reason::behind_events);
  return reasons.at(static_cast<std::size_t>(reason) - first);
}

}  // namespace conversed::model
