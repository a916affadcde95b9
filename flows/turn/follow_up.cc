#include "flows/turn/follow_up.h"

#include <algorithm>
#include <string>

#include "flows/json_members.h"
#include "flows/time/time_zone.h"
#include "flows/turn/standing.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

using model::QuietHours;
using model::Timestamp;
using nlohmann::json;

bool is_quiet(const QuietHours& quiet, std::int64_t minute) {
  if (quiet.from < quiet.to) return minute >= quiet.from && minute < quiet.to;
  return minute >= quiet.from || minute < quiet.to;
}

}  // namespace

Timestamp past_quiet_hours(const std::optional<QuietHours>& quiet, Timestamp time) {
  const auto zone = quiet ? TimeZone::find(quiet->timezone) : std::nullopt;
  if (!zone) return time;
  const std::int64_t local = zone->local(time);
  const std::int64_t day = day_of_local(local);
  const std::int64_t minute = (local - day * day_ms) / minute_ms;
  if (!is_quiet(*quiet, minute)) return time;
  std::int64_t end = day * day_ms + quiet->to * minute_ms;
  if (end <= local) end += day_ms;
  // A clock that is put back shows the end twice, and the first time may be past.
  for (const auto shown : zone->when(end)) {
    if (shown >= time) return shown;
  }
  return std::max(time, zone->first(end));
}

std::int64_t day_of(const std::optional<QuietHours>& quiet, Timestamp time) {
  const auto zone = quiet ? TimeZone::find(quiet->timezone) : std::nullopt;
  return day_of_local(zone ? zone->local(time) : model::to_unix_ms(time));
}

bool FollowUpCounts::allow(const model::Journey& journey, Timestamp time) const {
  if (session >= journey.max_per_session) return false;
  return journey.max_per_day == 0 || day_of(journey.quiet_hours, time) != day ||
         today < journey.max_per_day;
}

void FollowUpCounts::count(const model::Journey& journey, Timestamp time) {
  ++session;
  const std::int64_t now = day_of(journey.quiet_hours, time);
  today = now == day ? today + 1 : 1;
  day = now;
}

FollowUpFate fate_of(const model::Event& follow_up, const model::Session& session,
                     const std::optional<model::Journey>& journey, Timestamp now) {
  const model::FollowUpPlan plan = follow_up.follow_up.value_or(model::FollowUpPlan{});
  if (plan.expires_at && now >= *plan.expires_at) return FollowUpFate::too_late;
  if (plan.of_journey) {
    if (!journey) return FollowUpFate::too_many;
    const auto counts = counts_from(session.flow_state);
    if (counts && !counts->allow(*journey, now)) return FollowUpFate::too_many;
  }
  if (journey && past_quiet_hours(journey->quiet_hours, now) > now) {
    return FollowUpFate::quiet_time;
  }
  return FollowUpFate::runs;
}

model::FollowUp postponed(const model::Event& follow_up, const QuietHours& quiet, Timestamp now) {
  model::FollowUp later;
  // A different claim, because an event that was appended twice must not take this one.
  later.id = (follow_up.claim ? follow_up.claim->id : follow_up.id) + "q";
  later.session = follow_up.session;
  later.trace_id = follow_up.trace_id;
  later.tracestate = follow_up.tracestate;
  later.due_at = past_quiet_hours(quiet, now);
  later.text = follow_up.text.value_or("");
  later.data = follow_up.data;
  later.plan = follow_up.follow_up.value_or(model::FollowUpPlan{});
  return later;
}

std::string follow_up_flow_of(const model::Session& session) {
  const json& state = session.flow_state;
  // Without either, its execution has failed.
  if (find_member(state, "waiting") == nullptr && !session.execution) return {};
  const std::string* name = find_text(state, "followUpFlow");
  return name == nullptr ? std::string() : *name;
}

std::string waiting_flow(const model::Session& session, const model::Event& event,
                         const model::Endpoint& endpoint) {
  if (event.type != model::EventType::time_out) {
    if (starts_afresh(session, endpoint, event.accepted_at)) return {};
  } else if (event.claim && is_time_out_behind(session, event.claim->id)) {
    return {};
  }
  return follow_up_flow_of(session);
}

std::string flow_of_input(const model::Session& session, const model::Event& event,
                          const model::Endpoint& endpoint, const model::ProjectAssets& assets) {
  if (event.follow_up && !event.follow_up->flow_id.empty()) return event.follow_up->flow_id;
  const auto waiting = assets.flow_ids.find(waiting_flow(session, event, endpoint));
  return waiting != assets.flow_ids.end() ? waiting->second : endpoint.flow_id;
}

std::optional<FollowUpCounts> counts_from(const json& flow_state) {
  FollowUpCounts counts;
  const json* stored = find_member(flow_state, "followUps");
  if (stored == nullptr) return counts;
  const auto is_number = [](const json& number) { return number.is_number_integer(); };
  if (!stored->is_array() || stored->size() != 3 || !std::ranges::all_of(*stored, is_number)) {
    return std::nullopt;
  }
  stored->at(0).get_to(counts.session);
  stored->at(1).get_to(counts.day);
  stored->at(2).get_to(counts.today);
  return counts;
}

json to_json(const FollowUpCounts& counts) {
  return json::array({counts.session, counts.day, counts.today});
}

}  // namespace conversed::flows
