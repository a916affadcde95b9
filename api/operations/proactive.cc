// POST /v2.0/projects/{projectId}/settings/proactive/setup: asks for the follow-up of silent users
// to be set up; answers with the job that does it. The row is all that starts it: the job worker
// finds it there (store::Jobs::waiting), so nothing is promised that a crash could take back.
// /management/projects/{projectId}/proactive: whether silent users of a project that is set up are
// followed up, and the switch. What a set-up has made stays as it is; undoing that is what
// cancelling its job does.
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "api/http/error_reply.h"
#include "api/openapi/description.h"
#include "api/operations/accept.h"
#include "api/operations/documents.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/tasks.h"
#include "api/replies.h"
#include "store/model/ids.h"
#include "store/store.h"

namespace conversed::api {

namespace {

using model::Errc;
using model::Error;
using model::Result;

struct WantedSetUp {
  model::Job job;
  store::Jobs::Creation creation;
};

Result<WantedSetUp> read_wanted_set_up(const Call& call, ProjectServices& services) {
  auto project = path_project(services.store, call);
  if (!project) return model::fail(project.error());
  if (!services.options.proactive.enabled) {
    return model::fail(Errc::not_supported, "proactive follow-up is switched off");
  }
  auto key = append_key(call.request, project->organisation_id, "setUpProactive " + project->id);
  if (!key) return model::fail(key.error());
  WantedSetUp wanted;
  wanted.job = {.id = model::new_id(),
                .project_id = project->id,
                .type = std::string(model::proactive_setup),
                .name = "Set-up of proactive follow-up",
                .total_steps = static_cast<int>(model::proactive_setup_steps.size()),
                .fail_reason = {},
                .data = nullptr,
                .created_at = services.clock.now(),
                .changed_at = services.clock.now()};
  wanted.creation.organisation_id = project->organisation_id;
  wanted.creation.max_per_month =
      static_cast<std::int64_t>(services.options.quota.get().jobs_per_month);
  if (*key) {
    wanted.creation.keyed = store::KeyedAnswer{answer_key(**key), {}};
  }
  return wanted;
}

Response in_conflict_with(const std::string& job_id, const Call& call, model::Timestamp now) {
  const nlohmann::json details{{"taskId", job_id}};
  return error_response(409, "the project is being set up, or is set up already", call.exchange,
                        now, ErrorShape::problem, &details);
}

Result<Response> set_up_proactive(const Call& call, ProjectServices& services) {
  auto wanted = read_wanted_set_up(call, services);
  if (!wanted) return model::fail(wanted.error());
  const auto base = base_of(call.exchange.instance);
  const Document document = task_document(wanted->job, base);
  const MediaType type = negotiate(call.request);
  store::KeptAnswer answer{status::created, std::string(content_type(type)), write(document, type)};
  if (wanted->creation.keyed) wanted->creation.keyed->answer = answer;

  auto earlier = services.store.jobs().create(wanted->job, wanted->creation);
  if (!earlier) {
    const Error& error = earlier.error();
    // The store names the other job by its id alone.
    if (error.code != Errc::conflict || !model::is_id(error.message)) {
      return model::fail(store_error(error));
    }
    return in_conflict_with(error.message, call, services.clock.now());
  }
  HeaderList headers{{"Vary", "Accept"}};
  if (*earlier) {
    answer = std::move(**earlier);
  } else {
    headers.emplace_back("Location", task_path(wanted->job, base));
  }
  return Response{.status = answer.status,
                  .content_type = std::move(answer.content_type),
                  .headers = std::move(headers),
                  .body = std::move(answer.body)};
}

openapi::Description describe_set_up_proactive() {
  using namespace openapi;
  return {.summary = "Set up proactive follow-up",
          .details =
              "Provisions a tenant, creates a journey and generates a follow-up Flow, as a "
              "job. While one runs, and once the project is set up: 409, with the job's id "
              "in `details.taskId`.",
          .parameters = {idempotency_parameter()},
          .answers = {{.status = status::created,
                       .description = "The job.",
                       .content = representations("task", task_shape().schema()),
                       .headers = {{"Location", "The job's path, unless the answer is repeated.",
                                    text(1), Need::optional}},
                       .links = {{"task", "showTask_2_0", "taskId", "$response.body#/_id"},
                                 {"cancel", "cancelTask_2_0", "taskId", "$response.body#/_id"}}}},
          .errors = specified_errors()};
}

using nlohmann::json;
using store::FollowUpSwitch;

std::string_view name_of(FollowUpSwitch is) {
  if (is == FollowUpSwitch::not_set_up) return "notSetUp";
  return is == FollowUpSwitch::on ? "on" : "off";
}

Result<store::ProjectInfo> find_project(const Call& call, ProjectServices& services) {
  return path_project(services.store, call);
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

openapi::Schema proactive_state_schema() {
  using namespace openapi;
  return object({{"projectId", id()}, {"state", one_of({"notSetUp", "off", "on"})}});
}

openapi::Description describe_show_proactive() {
  using namespace openapi;
  return {.summary = "Say whether silent users are followed up",
          .answers = {json_answer("`notSetUp` until a set-up is done.",
                                  named("ProactiveState", proactive_state_schema()))},
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
          .body = json_content(named("ProactiveSwitch", body)),
          .answers = {json_answer("How it is now.", named("ProactiveSwitched", answer))},
          .errors = {404, 409, 501}};
}

}  // namespace

Operations proactive_operations() {
  static constexpr Operation rows[] = {
      for_clients("setUpProactive_2_0", Method::post,
                  "/v2.0/projects/{projectId}/settings/proactive/setup", Role::proactive_admin,
                  set_up_proactive, describe_set_up_proactive),
      for_operators("showProactive", Method::get, "/management/projects/{projectId}/proactive",
                    Role::proactive_admin, show_proactive, describe_show_proactive),
      for_operators("switchProactive", Method::post, "/management/projects/{projectId}/proactive",
                    Role::proactive_admin, switch_it, describe_switch),
  };
  return rows;
}

}  // namespace conversed::api
