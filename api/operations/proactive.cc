// /management/projects/{projectId}/proactive: shows and switches the follow-up of silent users of a
// project that is set up. The objects of the set-up stay. Cancelling the set-up's job removes them.
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using store::FollowUpSwitch;
using namespace openapi;

std::string_view name_of(FollowUpSwitch is) {
  if (is == FollowUpSwitch::not_set_up) return "notSetUp";
  return is == FollowUpSwitch::on ? "on" : "off";
}

Result<json> state_of(ProjectServices& services, const std::string& project_id) {
  const auto found = services.store.proactive().follow_up_switch(project_id);
  return from_store(found).map([&](FollowUpSwitch is) {
    return json{{"projectId", project_id}, {"state", name_of(is)}};
  });
}

Result<Response> show_proactive(const Call& call, ProjectServices& services) {
  auto project = path_project(services.store, call);
  if (!project) return model::fail(project.error());
  return state_of(services, project->id).map(ok);
}

// Returns the number of withdrawn follow-ups.
Result<std::int64_t> turn(ProjectServices& services, const std::string& project_id, bool on) {
  using store::Proactive;
  auto turned = services.store.committer().write_and_wait([&](store::Writer& writer) {
    const auto none = [] { return std::int64_t{0}; };
    auto withdrawn = on ? Proactive::switch_on(writer, project_id).map(none)
                        : Proactive::switch_off(writer, project_id);
    if (withdrawn) services.store.assets().grow(writer);
    return withdrawn;
  });
  if (turned && !on) *turned += services.store.proactive().withdraw_elsewhere(project_id);
  return from_store(std::move(turned));
}

Result<Response> switch_it(const Call& call, ProjectServices& services) {
  auto project = path_project(services.store, call);
  if (!project) return model::fail(project.error());
  auto body = read_object(call.request);
  if (!body) return model::fail(body.error());
  const json on = body->value("on", json());
  if (!on.is_boolean()) return model::fail(Errc::invalid_argument, "on must be true or false");
  if (on.get<bool>() && !services.options.proactive.enabled) {
    return model::fail(Errc::not_supported, "proactive follow-up is switched off");
  }
  auto withdrawn = turn(services, project->id, on.get<bool>());
  if (!withdrawn) return model::fail(withdrawn.error());
  auto state = state_of(services, project->id);
  if (!state) return model::fail(state.error());
  (*state)["withdrawn"] = *withdrawn;
  return ok(*state);
}

Schema proactive_state_schema() {
  return object({{"projectId", id()}, {"state", one_of({"notSetUp", "off", "on"})}});
}

Description describe_show_proactive() {
  return {.summary = "Show whether silent users are followed up",
          .answers = {json_answer("`notSetUp` until a set-up is done.",
                                  named("ProactiveState", proactive_state_schema()))}};
}

Description describe_switch() {
  const auto body = with_example({{"on", false}}, object({{"on", boolean()}}));
  const auto answer =
      with_members(proactive_state_schema(),
                   {{"withdrawn", described("The number of withdrawn follow-ups.", integer(0))}});
  return {.summary = "Switch the follow-up of silent users off, or on again",
          .details =
              "Switching on requires a project that is set up; otherwise the answer is 409. "
              "Switching off ends the journey: in one transaction, no further follow-up of the "
              "journey begins and its waiting follow-ups are withdrawn. Follow-ups of `followUp` "
              "Nodes still come. Tenant, journey and Flow stay, so the project still counts as set "
              "up. While a set-up runs, the answer is 409.",
          .body = json_content(named("ProactiveSwitch", body)),
          .answers = {json_answer("The new state.", named("ProactiveSwitched", answer))},
          .errors = {404, 409, 501}};
}

}  // namespace

Operations proactive_operations() {
  static constexpr Operation rows[] = {
      for_operators("showProactive", Method::get, "/management/projects/{projectId}/proactive",
                    Role::proactive_admin, show_proactive, describe_show_proactive),
      for_operators("switchProactive", Method::post, "/management/projects/{projectId}/proactive",
                    Role::proactive_admin, switch_it, describe_switch),
  };
  return rows;
}

}  // namespace conversed::api
