// /management/projects/{projectId}/proactive: whether silent users of a project that is set up are
// followed up, and the switch. What a set-up has made stays as it is; undoing that is what
// cancelling its job does.
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "api/openapi/lists.h"
#include "api/openapi/messages.h"
#include "api/operations/management.h"
#include "api/operations/objects.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using store::FollowUpSwitch;

std::string_view name_of(FollowUpSwitch is) {
  if (is == FollowUpSwitch::not_set_up) return "notSetUp";
  return is == FollowUpSwitch::on ? "on" : "off";
}

Result<store::ProjectInfo> find_project(const Call& call, ProjectServices& services) {
  auto id = id_of(call, "projectId");
  if (!id) return model::fail(id.error());
  return open_project(services.store, *call.principal, *id, Role::proactive_admin);
}

Result<json> state_of(ProjectServices& services, const std::string& project_id) {
  auto is = services.store.proactive().follow_up_switch(project_id);
  if (!is) return model::fail(store_error(is.error()));
  return json{{"projectId", project_id}, {"state", name_of(*is)}};
}

Result<Response> show_proactive(const Call& call, ProjectServices& services) {
  auto project = find_project(call, services);
  if (!project) return model::fail(project.error());
  auto state = state_of(services, project->id);
  if (!state) return model::fail(state.error());
  return ok(*state);
}

Result<bool> read_on(const Request& request) {
  auto body = read_object(request);
  if (!body) return model::fail(body.error());
  const auto on = body->find("on");
  if (on != body->end() && on->is_boolean()) return on->get<bool>();
  return model::fail(Errc::invalid_argument, "on must be true or false");
}

// How many follow-ups were taken back.
Result<std::int64_t> turn(ProjectServices& services, const std::string& project_id, bool on) {
  std::int64_t taken_back = 0;
  auto written =
      services.store.committer().write_and_wait([&](store::Writer& writer) -> Result<void> {
        if (on) {
          if (auto done = store::Proactive::switch_on(writer, project_id); !done) return done;
        } else {
          auto count = store::Proactive::switch_off(writer, project_id);
          if (!count) return model::fail(count.error());
          taken_back = *count;
        }
        services.store.assets().grow(writer, store::Assets::Lexicons::stay);
        return {};
      });
  if (!written) return model::fail(store_error(written.error()));
  return taken_back;
}

Result<Response> switch_it(const Call& call, ProjectServices& services) {
  auto project = find_project(call, services);
  if (!project) return model::fail(project.error());
  auto on = read_on(call.request);
  if (!on) return model::fail(on.error());
  if (*on && !services.options.proactive.enabled) {
    return model::fail(Errc::not_supported, "proactive follow-up is switched off");
  }
  auto taken_back = turn(services, project->id, *on);
  if (!taken_back) return model::fail(taken_back.error());
  auto state = state_of(services, project->id);
  if (!state) return model::fail(state.error());
  (*state)["withdrawn"] = *taken_back;
  return ok(*state);
}

openapi::Parameter path_project() {
  return openapi::path_parameter("projectId", "The project.", openapi::id());
}

openapi::Schema proactive_state_schema() {
  using namespace openapi;
  return object({{"projectId", id()}, {"state", one_of({"notSetUp", "off", "on"})}});
}

openapi::Description describe_show_proactive() {
  using namespace openapi;
  return {.summary = "Say whether silent users are followed up",
          .parameters = {path_project()},
          .answers = {{.description = "`notSetUp` until a set-up is done.",
                       .content = json_content(named("ProactiveState", proactive_state_schema()))}},
          .errors = {404}};
}

openapi::Description describe_switch() {
  using namespace openapi;
  const auto body = with_example({{"on", false}}, object({{"on", boolean()}}));
  const auto answer = with_members(
      proactive_state_schema(),
      {{"withdrawn", described("Follow-ups that waited and were taken back.", integer(0))}});
  return {.summary = "Switch the follow-up of silent users off, or on again",
          .details =
              "On: in a project that is set up, else 409. Off: no journey begins any more, and the "
              "follow-ups of the journey that wait are taken back, in one transaction; those that "
              "`followUp` Nodes have asked for come. Tenant, journey and Flow stay, so that the "
              "project counts as set up. While a set-up runs: 409.",
          .parameters = {path_project()},
          .body = json_content(named("ProactiveSwitch", body)),
          .answers = {{.description = "How it is now.",
                       .content = json_content(named("ProactiveSwitched", answer))}},
          .errors = {404, 409, 501}};
}

}  // namespace

constinit const Operation show_proactive_operation =
    for_operators("showProactive", Method::get, "/management/projects/{projectId}/proactive",
                  Role::proactive_admin, show_proactive, describe_show_proactive);

constinit const Operation switch_proactive_operation =
    for_operators("switchProactive", Method::post, "/management/projects/{projectId}/proactive",
                  Role::proactive_admin, switch_it, describe_switch);

}  // namespace conversed::api
