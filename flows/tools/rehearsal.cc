#include "flows/tools/rehearsal.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "flows/journey.h"
#include "flows/lexicon/lexicon.h"
#include "flows/tools/stubs.h"
#include "flows/turn/standing.h"

namespace conversed::flows::tools {
namespace {

using model::Errc;
using model::EventType;
using model::fail;
using model::Result;

constexpr std::size_t most_events = 1000;  // of timers, while the time advances once

class BundleLibrary final : public Library {
 public:
  void add(const std::string& name, const nlohmann::json& definition) {
    // The bundle was checked, so its Flows compile.
    if (auto compiled = Flow::compile(definition)) flows_.emplace(name, *compiled);
  }
  void add(const model::BundleLexicon& source) {
    std::vector<lexicon::Entry> entries;
    for (const auto& entry : source.entries) {
      entries.push_back({entry.main_keyphrase, entry.keyphrases, entry.slots, entry.data});
    }
    lexicons_.emplace(source.name, std::make_shared<const lexicon::Lexicon>(
                                       source.name, source.name, std::move(entries)));
  }

  [[nodiscard]] Result<FoundFlow> flow(const std::string& name, std::int64_t) const override {
    const auto found = flows_.find(name);
    if (found == flows_.end()) return fail(Errc::not_found, "there is no such Flow");
    return FoundFlow{found->second, 1};
  }
  [[nodiscard]] Result<std::shared_ptr<const lexicon::Lexicon>> find_lexicon(
      const std::string& name) const override {
    const auto found = lexicons_.find(name);
    if (found == lexicons_.end()) return fail(Errc::not_found, "there is no such lexicon");
    return found->second;
  }

 private:
  std::map<std::string, std::shared_ptr<const Flow>> flows_;
  std::map<std::string, std::shared_ptr<const lexicon::Lexicon>> lexicons_;
};

// The bundle's journey as after its set-up. Ids of Flows are their names.
Result<void> set_journey(const model::Bundle& bundle, Stage& stage, BundleLibrary& library) {
  if (!bundle.proactive.is_object() || !bundle.proactive.contains("journey")) return {};
  const auto definition = complete_journey(bundle.proactive, bundle.locales.front());
  if (const auto only = definition.find("endpoint");
      only != definition.end() && *only != stage.endpoint.name) {
    return {};
  }
  auto journey = model::journey_from(definition);
  if (!journey) return fail(journey.error());
  std::string name = "Follow-up";
  if (const auto flow = definition.find("flow"); flow != definition.end()) {
    name = flow->get<std::string>();
  } else {
    auto made = follow_up_flow(definition, name);
    if (!made) return fail(made.error());
    library.add(name, *made);
  }
  stage.assets.journey = std::move(*journey);
  stage.assets.flow_ids[name] = name;
  stage.endpoint.follow_up_flow_id = name;
  return {};
}

std::size_t bytes_of(const model::Effects& effects) {
  std::size_t bytes = 0;
  for (const auto& line : effects.log) bytes += line.size();
  for (const auto& output : effects.outputs)
    bytes += output.text.size() + output.data.dump().size();
  if (effects.call && !effects.call->due_at) bytes += request_of(*effects.call).dump().size();
  return bytes;
}

}  // namespace

Result<Stage> stage_of(const model::Bundle& bundle, const std::string& endpoint,
                       const std::string& flow) {
  Stage stage;
  std::string runs = flow;
  for (const auto& each : bundle.endpoints) {
    if (!endpoint.empty() && each.name != endpoint) continue;
    stage.endpoint.name = each.name;
    stage.endpoint.session_expiry = each.session_expiry;
    stage.endpoint.error_text = each.error_text;
    stage.endpoint.error_flow_id = each.error_flow;  // ids of Flows are their names
    if (runs.empty()) runs = each.flow;
    break;
  }
  if (!endpoint.empty() && stage.endpoint.name.empty()) {
    return fail(Errc::not_found, "the bundle has no Endpoint '" + endpoint + "'");
  }
  if (runs.empty() && bundle.flows.size() == 1) runs = bundle.flows.front().name;
  if (runs.empty()) {
    return fail(Errc::not_found, "say which Flow to run: the bundle has no Endpoint");
  }
  auto library = std::make_shared<BundleLibrary>();
  for (const auto& each : bundle.flows) library->add(each.name, each.definition);
  for (const auto& each : bundle.lexicons) library->add(each);
  auto found = library->flow(runs, 0);
  if (!found) return fail(Errc::not_found, "the bundle has no Flow '" + runs + "'");
  stage.flow = std::move(found->flow);
  stage.endpoint.id = "endpoint";
  stage.endpoint.project_id = "project";
  stage.endpoint.flow_id = runs;
  stage.endpoint.url_token = std::string(64, '0');
  stage.assets.project_id = "project";
  stage.assets.locales = bundle.locales;
  for (const auto& each : bundle.tokens) stage.assets.tokens.emplace(each.label, each.script);
  for (const auto& each : bundle.connections) stage.assets.connection_ids[each.name] = each.name;
  for (const auto& each : bundle.flows) stage.assets.flow_ids[each.name] = each.name;
  if (auto set = set_journey(bundle, stage, *library); !set) return fail(set.error());
  stage.library = std::move(library);
  return stage;
}

std::vector<std::shared_ptr<const Flow>> flows_of(const model::Bundle& bundle, const Stage& stage) {
  std::vector<std::shared_ptr<const Flow>> flows;
  for (const auto& flow : bundle.flows) {
    if (auto found = stage.library->flow(flow.name, 0)) flows.push_back(std::move(found->flow));
  }
  return flows;
}

Rehearsal::Rehearsal(const Stage& stage, model::Timestamp now, Upstream upstream,
                     TurnObserver* observer, const RunLimits& limits)
    : stage_(stage),
      now_(now),
      upstream_(std::move(upstream)),
      observer_(observer),
      limits_(limits) {
  session_.started_at = now_;
  profile_.project_id = "project";
  profile_.user_id = "user";
}

void Rehearsal::start(model::Session session, model::Profile profile) {
  if (!session.key.project_id.empty()) key_ = session.key;
  session_ = std::move(session);
  profile_ = std::move(profile);
}

void Rehearsal::prepare(const nlohmann::json& context, const nlohmann::json& profile) {
  session_.context = context;
  if (!context.empty()) session_.last_activity_at = now_;
  profile_.data = profile;
}

Result<void> Rehearsal::take(EventType type, std::optional<std::string> text, nlohmann::json data) {
  if (type == EventType::user_message) make_way();
  if (open_call_) return fail(Errc::conflict, "the session waits for the answer of a call");
  if (session_.busy()) {
    return fail(Errc::conflict, "the session sleeps, and inputs wait; advance the time first");
  }
  auto event = new_event(type);
  event.text = std::move(text);
  event.data = std::move(data);
  run(std::move(event));
  return {};
}

Result<void> Rehearsal::advance(std::chrono::milliseconds time) {
  const auto until = now_ + time;
  std::size_t events = 0;
  while (auto event = next_event(until)) {
    if (++events > most_events) {
      return fail(Errc::too_large, "more than " + std::to_string(most_events) +
                                       " timers fall due; advance the time in shorter steps");
    }
    take_timer(std::move(*event));
  }
  now_ = until;
  return {};
}

void Rehearsal::answer(model::CallResult result) {
  auto event = new_event(EventType::call_result);
  event.result = std::move(result);
  resume(std::move(event));
}

void Rehearsal::make_way() {
  follow_ups_.clear();
  if (session_.execution && session_.execution->source == EventType::follow_up) {
    session_.execution.reset();
    sleep_.reset();
    open_call_.reset();
  }
}

void Rehearsal::resume(model::Event result) {
  open_call_.reset();
  run(std::move(result));
}

std::vector<Rehearsal::Waiting> Rehearsal::waiting() const {
  if (session_.busy()) {
    if (!sleep_) return {};
    return {Waiting{sleep_->id, EventType::timer, *sleep_->due_at}};
  }
  std::vector<Waiting> all;
  for (const auto& timer : time_outs_) {
    all.push_back({timer.id, EventType::time_out, *timer.due_at});
  }
  for (const auto& each : follow_ups_) all.push_back({each.id, EventType::follow_up, each.due_at});
  std::ranges::stable_sort(all, {}, &Waiting::due_at);
  return all;
}

void Rehearsal::run_waiting(const std::string& id, const model::Event& as) {
  const auto run_as = [&](model::Event event) {
    event.id = as.id;
    event.trace_id = as.trace_id;
    event.accepted_at = as.accepted_at;
    take_timer(std::move(event));
  };
  if (sleep_ && sleep_->id == id) return run_as(event_of(*std::exchange(sleep_, std::nullopt)));
  if (const auto timer = std::ranges::find(time_outs_, id, &model::PendingCall::id);
      timer != time_outs_.end()) {
    const auto taken = *timer;
    time_outs_.erase(timer);
    return run_as(event_of(taken));
  }
  const auto follow_up = std::ranges::find(follow_ups_, id, &model::FollowUp::id);
  auto taken = std::move(*follow_up);
  follow_ups_.erase(follow_up);
  run_as(event_of(std::move(taken)));
}

void Rehearsal::drop_follow_up(const std::string& id) {
  std::erase_if(follow_ups_, [&](const auto& each) { return each.id == id; });
}

std::optional<model::Timestamp> Rehearsal::next_due() const {
  if (session_.busy()) return sleep_ ? sleep_->due_at : std::nullopt;
  std::optional<model::Timestamp> next;
  const auto take_earlier = [&](model::Timestamp at) { next = std::min(next.value_or(at), at); };
  for (const auto& timer : time_outs_) take_earlier(*timer.due_at);
  for (const auto& follow_up : follow_ups_) take_earlier(follow_up.due_at);
  return next;
}

std::string Rehearsal::waits_at() const {
  const auto places = standings(session_.flow_state, session_.execution);
  return places.empty() ? "" : places.back().at;
}

model::Event Rehearsal::new_event(EventType type) {
  model::Event event;
  event.id = "input" + std::to_string(++events_);
  event.type = type;
  event.session = key_;
  event.accepted_at = now_;
  event.trace_id = std::string(32, '0');
  return event;
}

model::Event Rehearsal::event_of(const model::PendingCall& timer) {
  auto event = new_event(timer.is_time_out ? EventType::time_out : EventType::timer);
  event.claim = model::Claim{model::Claim::Kind::timer, timer.id};
  return event;
}

model::Event Rehearsal::event_of(model::FollowUp follow_up) {
  auto event = new_event(EventType::follow_up);
  event.claim = model::Claim{model::Claim::Kind::follow_up, std::move(follow_up.id)};
  event.text = std::move(follow_up.text);
  event.data = std::move(follow_up.data);
  event.follow_up = std::move(follow_up.plan);
  return event;
}

// A busy session sleeps: its time-outs and follow-ups wait until the execution ends.
std::optional<model::Event> Rehearsal::next_event(model::Timestamp until) {
  const auto due = next_due();
  if (!due || *due > until) return std::nullopt;
  now_ = std::max(now_, *due);
  if (session_.busy()) return event_of(*std::exchange(sleep_, std::nullopt));
  const auto timer = std::ranges::find(time_outs_, due, &model::PendingCall::due_at);
  if (timer != time_outs_.end()) {
    const auto taken = *timer;
    time_outs_.erase(timer);
    return event_of(taken);
  }
  const auto follow_up = std::ranges::find(follow_ups_, *due, &model::FollowUp::due_at);
  auto taken = std::move(*follow_up);
  follow_ups_.erase(follow_up);
  return event_of(std::move(taken));
}

void Rehearsal::take_timer(model::Event event) {
  if (event.follow_up) return take_follow_up(std::move(event));
  run(std::move(event));
}

void Rehearsal::take_follow_up(model::Event event) {
  const auto& journey = stage_.assets.journey;
  switch (fate_of(event, session_, journey, now_)) {
    case FollowUpFate::quiet_time:
      follow_ups_.push_back(postponed(event, *journey->quiet_hours, now_));
      return;
    case FollowUpFate::too_late:
    case FollowUpFate::too_many:
      return;
    case FollowUpFate::runs:
      break;
  }
  if (!event.follow_up->flow_id.empty()) return run(std::move(event));
  apply(follow_up_effects(std::move(session_), event, now_));
}

bool Rehearsal::is_taken_behind(const model::Event& event) const {
  if (event.type != EventType::inject || !waits_for_event_behind(session_.flow_state)) return false;
  const auto takes = takes_inject({.flow = *stage_.flow,
                                   .assets = stage_.assets,
                                   .endpoint = stage_.endpoint,
                                   .session = session_,
                                   .profile = profile_,
                                   .event = event,
                                   .now = now_,
                                   .limits = stage_.limits,
                                   .flow_version = 1,
                                   .library = stage_.library.get(),
                                   .is_overdue = stage_.is_overdue});
  return takes && *takes;  // an error fails the follow-up's Flow, too
}

Library::FoundFlow Rehearsal::flow_for(const model::Event& event) const {
  std::string name;
  if (event.follow_up) {
    name = event.follow_up->flow_id;
  } else if (!model::is_input(event.type)) {
    name = session_.execution ? session_.execution->flow_id : "";
  } else {
    name = is_taken_behind(event) ? "" : waiting_flow(session_, event, stage_.endpoint);
  }
  auto found = stage_.library->flow(name, 0);
  return found ? *std::move(found) : Library::FoundFlow{stage_.flow, 1};
}

// Moves the session into the Turn.
Result<model::Effects> Rehearsal::turn_of(const Library::FoundFlow& found,
                                          const model::Event& event, TurnPlace& failed_at,
                                          const std::string* failure) {
  const bool is_follow_up_flow =
      failure != nullptr || event.follow_up || found.flow->name() == follow_up_flow_of(session_);
  return run_turn({.flow = *found.flow,
                   .assets = stage_.assets,
                   .endpoint = stage_.endpoint,
                   .session = std::move(session_),
                   .profile = profile_,
                   .event = event,
                   .now = now_,
                   .limits = stage_.limits,
                   .flow_version = found.version,
                   .library = stage_.library.get(),
                   .is_follow_up_flow = is_follow_up_flow,
                   .failure = failure,
                   .is_overdue = stage_.is_overdue,
                   .failed_at = &failed_at,
                   .branches = &branches_,
                   .observer = observer_});
}

// Runs the Flow for errors, which then is `flow`. An error in that Flow ends there.
model::Effects Rehearsal::after_failure(const model::Session& before, const model::Event& event,
                                        Library::FoundFlow& flow) {
  const auto& ids = stage_.assets.flow_ids;
  const auto known = std::ranges::find_if(
      ids, [&](const auto& one) { return one.second == stage_.endpoint.error_flow_id; });
  if (known != ids.end() && known->first != flow.flow->name()) {
    auto handler = stage_.library->flow(known->first, 0);
    session_ = before;
    TurnPlace place;
    auto effects = handler ? turn_of(*handler, event, place, &done_.error)
                           : Result<model::Effects>(fail(handler.error()));
    if (effects) {
      flow = *std::move(handler);
      return *std::move(effects);
    }
    done_.error += "; then onError failed: " + effects.error().message;
  }
  return failure_effects(before, stage_.endpoint, event, now_);
}

void Rehearsal::run(model::Event event) {
  std::size_t bytes = 0;
  for (std::size_t turn = 1;; ++turn) {
    auto flow = flow_for(event);
    const auto before = session_;
    TurnPlace place;
    auto effects = turn_of(flow, event, place, nullptr);
    if (effects) {
      bytes += bytes_of(*effects);
      if (auto why = excess(*effects, turn, bytes); !why.empty()) {
        effects = fail(Errc::too_large, std::move(why));
      }
    }
    if (!effects) {
      done_.error = effects.error().message;
      done_.failed_at = std::move(place.node);
      effects = after_failure(before, event, flow);
    }
    auto call = effects->call;
    apply(std::move(*effects));
    if (session_.execution) session_.execution->flow_id = flow.flow->name();
    if (!call || call->due_at) return;
    auto result = upstream_(*call);
    if (!result) {
      open_call_ = std::move(call);
      return;
    }
    event = new_event(EventType::call_result);
    event.result = std::move(result);
    event.result->call_id = call->id;
  }
}

std::string Rehearsal::excess(const model::Effects& effects, std::size_t turn,
                              std::size_t bytes) const {
  const auto ended = [](const char* what, std::size_t most, const char* of) {
    return "the run was ended: the Flow " + std::string(what) + " more than " +
           std::to_string(most) + of;
  };
  if (turn > limits_.turns) return ended("runs", limits_.turns, " Turns");
  if (done_.outputs.size() + effects.outputs.size() > limits_.outputs) {
    return ended("says", limits_.outputs, " outputs");
  }
  if (done_.log.size() + effects.log.size() > limits_.log_lines) {
    return ended("logs", limits_.log_lines, " lines");
  }
  if (bytes > limits_.bytes)
    return ended("makes", limits_.bytes, " bytes of outputs, log and calls");
  return {};
}

void Rehearsal::apply(model::Effects effects) {
  session_ = std::move(effects.session);
  if (effects.profile) profile_ = std::move(*effects.profile);
  std::ranges::move(effects.outputs, std::back_inserter(done_.outputs));
  std::ranges::move(effects.log, std::back_inserter(done_.log));
  take_timers(effects);
}

// A time-out is obsolete when its question no longer waits.
void Rehearsal::take_timers(model::Effects& effects) {
  std::erase_if(time_outs_,
                [&](const auto& timer) { return !waits_for_time_out(session_, timer.id); });
  if (effects.time_out) time_outs_.push_back(std::move(*effects.time_out));
  if (effects.call && effects.call->due_at) sleep_ = std::move(effects.call);
  if (effects.follow_ups_cancelled) follow_ups_.clear();
  std::ranges::move(effects.follow_ups, std::back_inserter(follow_ups_));
}

}  // namespace conversed::flows::tools
