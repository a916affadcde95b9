// POST /v2.0/projects/{projectId}/settings/proactive/setup: asks for the follow-up of silent users
// to be set up; answers with the job that does it. The row is all that starts it: whoever runs jobs
// finds it there (store::Jobs::waiting), so nothing is promised that a crash could take back.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/http/error_reply.h"
#include "api/openapi/lists.h"
#include "api/openapi/messages.h"
#include "api/operations/accept.h"
#include "api/operations/documents.h"
#include "api/operations/objects.h"
#include "api/operations/operations.h"
#include "api/operations/task_document.h"
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
  auto id = id_of(call, "projectId");
  if (!id) return model::fail(id.error());
  auto project = open_project(services.store, *call.principal, *id, Role::proactive_admin);
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
  return {
      .summary = "Set up proactive follow-up",
      .details =
          "Provisions a tenant, creates a journey and generates a follow-up Flow, as a "
          "job. While one runs, and once the project is set up: 409, with the job's id "
          "in `details.taskId`.",
      .parameters = {path_parameter("projectId", "The project.", id()), idempotency_parameter()},
      .answers = {{.status = status::created,
                   .description = "The job.",
                   .content = representations("task", task_schema()),
                   .headers = {{"Location", "The job's path, unless the answer is repeated.",
                                text(1), Need::optional}},
                   .links = {{"task", show_task_operation.id, "taskId", "$response.body#/_id"},
                             {"cancel", cancel_task_operation.id, "taskId",
                              "$response.body#/_id"}}}},
      .errors = specified_errors()};
}

}  // namespace

constinit const Operation set_up_proactive_operation = for_clients(
    "setUpProactive_2_0", Method::post, "/v2.0/projects/{projectId}/settings/proactive/setup",
    Role::proactive_admin, set_up_proactive, describe_set_up_proactive);

}  // namespace conversed::api
