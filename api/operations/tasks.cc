// POST /v2.0/projects/{projectId}/settings/proactive/setup: creates the job that sets up the
// follow-up of silent users, and answers with it. The job worker reads waiting jobs from the store
// (store::Jobs::waiting), so a crash loses no job.
// /v2.0/tasks: lists, watches and cancels jobs.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/auth/oauth_parameters.h"
#include "api/http/error_reply.h"
#include "api/live/pending_replies.h"
#include "api/openapi/description.h"
#include "api/operations/accept.h"
#include "api/operations/documents.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/tasks.h"
#include "api/operations/why.h"
#include "api/reasons/reasons.h"
#include "api/replies.h"
#include "api/representation/input.h"
#include "store/model/ids.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Job;
using model::Result;
using namespace openapi;

Schema task_status() {
  using model::JobState;
  std::vector<std::string_view> names;
  for (const auto state : {JobState::queued, JobState::active, JobState::cancelling, JobState::done,
                           JobState::cancelled, JobState::error}) {
    names.push_back(model::to_string(state));
  }
  return one_of(names);
}

// A job on all dead letters or deliveries that fit a filter.
bool is_bulk_work(const Job& job) {
  return job.type == model::replay_dead_letters || job.type == model::discard_dead_letters ||
         job.type == model::retry_deliveries || job.type == model::drop_deliveries;
}

// The filter of such a job may name a user.
nlohmann::json shown_data(const Job& job) {
  if (!is_bulk_work(job)) return job.data;
  const auto count = [&](const char* name) {
    return job.data.is_object() ? job.data.value(name, std::int64_t{0}) : 0;
  };
  const auto reasons = job.data.is_object() ? job.data.value("reasons", nlohmann::json::object())
                                            : nlohmann::json::object();
  return {{"changed", count("changed")}, {"skipped", count("skipped")}, {"reasons", reasons}};
}

const Shape<Job>& task_shape() {
  static const Shape<Job> shape(
      "Task",
      {{"_id", id(), &Job::id},
       {"status", task_status(), [](const Job& job) { return model::to_string(job.state); }},
       {"type", text(1), &Job::type},
       {"progress", integer(0, 100), &Job::progress},
       {"name", text(), &Job::name},
       {"currentStep", integer(0), &Job::current_step},
       {"totalStep", integer(0), &Job::total_steps},
       {"stepName", nullable(text(1)), null_if_empty(model::step_name)},
       {"failReason", nullable(text()), null_if_empty(&Job::fail_reason)},
       {"data", anything(), shown_data},
       {"waits", waits_schema(), [](const Job& job) { return waits_json(Reasons::of_job(job)); }},
       {"createdAt", unix_time(), &Job::created_at},
       {"lastChangedAt", unix_time(), &Job::changed_at}});
  return shape;
}

// The job's path, below the base path if the request used it.
std::string task_path(const Job& job, const Request& request, const ProjectServices& services) {
  const auto base = base_of(request.path, services.options.api.base_path);
  return std::string(base) + "/v2.0/tasks/" + job.id;
}

constexpr ListForm task_list{.root = "tasks", .item = "item"};
constexpr std::string_view missing_task = "there is no such task";

Result<Job> find_job(ProjectServices& services, const std::string& id) {
  return services.store.jobs().get(id).map_error([](const model::Error& error) {
    if (error.code != Errc::not_found) return store_error(error);
    return model::Error{Errc::not_found, std::string(missing_task)};
  });
}

// The role that may cancel the job.
Role canceller_of(const Job& job) {
  return is_bulk_work(job) ? Role::conversation_admin : Role::proactive_admin;
}

// The job in the path, for a principal with the role in its project.
Result<Job> open_job(const Call& call, ProjectServices& services, Role (*role)(const Job&)) {
  auto id = id_of(call, "taskId");
  if (!id) return model::fail(id.error());
  auto job = services.store.jobs().get(*id);
  auto project = open_owner(services.store, *call.principal, job.map(&Job::project_id),
                            job ? role(*job) : Role::member, missing_task);
  if (!project) return model::fail(project.error());
  return job;
}

Response job_response(const Request& request, const ProjectServices& services,
                      const std::string& instance, const Job& job, int status = status::ok) {
  return document_response(request, instance, status,
                           {.name = "task",
                            .value = task_shape()(job),
                            .links = {.self = task_path(job, request, services)}});
}

bool has_news(const Job& seen, const Job& now) {
  return seen.state != now.state || seen.progress != now.progress;
}

// A client that waits for a change of a job.
struct TaskPoll {
  ProjectServices& services;
  Request request;
  Job seen;
  KeyWatch::TimePoint deadline;
  Reply reply;

  void answer(const Result<Job>& job) {
    if (!job) return reply.fail(job.error());
    reply.send(job_response(request, services, reply.context().instance, *job));
  }
};

void wait_for_news(const std::shared_ptr<TaskPoll>& poll) {
  ProjectServices& services = poll->services;
  const std::string& id = poll->seen.id;
  // Watches before it looks, so a change in between is noticed.
  const auto ticket = services.watch.watch(id, poll->deadline, [poll](WatchEnd why) {
    // The change may affect neither status nor progress.
    if (why == WatchEnd::notified) return wait_for_news(poll);
    const bool stopped = why == WatchEnd::stopped;
    poll->answer(stopped ? poll->seen : find_job(poll->services, poll->seen.id));
  });
  const auto job = find_job(services, id);
  if (job && !has_news(poll->seen, *job)) return;
  if (services.watch.cancel(ticket)) poll->answer(job);
}

void show_task(Call call, ProjectServices& services, Reply reply) {
  auto wait = wait_parameter(call.request);
  if (!wait) return reply.fail(wait.error());
  auto job = open_job(call, services, [](const Job&) { return Role::member; });
  if (!job) return reply.fail(job.error());
  const auto deadline = services.options.steady_now() + std::chrono::seconds(*wait);
  const auto poll = std::make_shared<TaskPoll>(
      TaskPoll{services, std::move(call.request), *std::move(job), deadline, std::move(reply)});
  if (*wait == 0 || model::is_final(poll->seen.state)) return poll->answer(poll->seen);
  wait_for_news(poll);
}

// The projects whose jobs are listed: the query's project, or all projects of the principal.
Result<std::vector<std::string>> read_projects(const Call& call, ProjectServices& services) {
  std::vector<std::string> ids;
  if (const auto wanted = call.request.parameter("projectId")) {
    auto id = checked_id("projectId", *wanted);
    if (!id) return model::fail(id.error());
    auto project = open_project(services.store, *call.principal, *id, Role::member);
    if (!project) return model::fail(project.error());
    ids.push_back(std::move(project->id));
    return ids;
  }
  auto projects = projects_with(services.store, *call.principal, Role::member);
  if (!projects) return model::fail(projects.error());
  for (auto& project : *projects) ids.push_back(std::move(project.id));
  return ids;
}

Result<Response> list_tasks(const Call& call, ProjectServices& services) {
  auto request = read_page_request(call.request, services.store.timer_now());
  if (!request) return model::fail(request.error());
  store::Jobs::Filter filter;
  if (const auto text = call.request.parameter("status")) {
    filter.state = model::job_state_from(*text);
    if (!filter.state) {
      return model::fail(Errc::invalid_argument,
                         "status must be queued, active, done, cancelling, cancelled or error");
    }
  }
  auto reason = reason_filter(call.request, model::Listed::jobs);
  if (!reason) return model::fail(reason.error());
  auto projects = read_projects(call, services);
  if (!projects) return model::fail(projects.error());
  filter.project_ids = *std::move(projects);
  if (*reason && !filter.state) filter.state = model::JobState::queued;
  // Only queued jobs wait.
  if (*reason && filter.state != model::JobState::queued) filter.project_ids.clear();
  auto page = services.store.jobs().list(filter, *request);
  if (!page) return model::fail(store_error(page.error()));
  return page_response(call, task_list, *std::move(page), task_shape());
}

Result<Response> cancel_task(const Call& call, ProjectServices& services) {
  auto job = open_job(call, services, canceller_of);
  if (!job) return model::fail(job.error());
  auto cancelled = services.store.jobs().cancel(job->id);
  if (!cancelled && cancelled.error().code == Errc::conflict) {
    return model::fail(Errc::conflict, "the task has ended already");
  }
  if (!cancelled) return model::fail(store_error(cancelled.error()));
  return job_response(call.request, services, call.exchange.instance, *cancelled);
}

Success task_answer(std::string description) {
  return {.description = std::move(description),
          .content = representations("task", task_shape().schema())};
}

Description describe_list_of(std::string_view operation) {
  auto parameters = page_parameters(store::Jobs::sort_fields());
  parameters.push_back(query_parameter("status", "Only tasks of this status.", task_status()));
  parameters.push_back(query_parameter("projectId", "Only tasks of this project.", id()));
  parameters.push_back(reason_parameter(model::Listed::jobs));
  return {.summary = "List tasks",
          .parameters = std::move(parameters),
          .answers = {list_answer(operation, "A page of tasks, the newest first.", task_list,
                                  task_shape().schema())},
          .errors = {404}};
}

Description describe_show_task() {
  return {.summary = "Get a task",
          .parameters = {wait_until("a change of its status or progress")},
          .answers = {task_answer("The task.")}};
}

Description describe_cancel_task() {
  return {.summary = "Cancel a task",
          .details = "A set-up needs the role proactiveAdmin, any other task conversationAdmin.",
          .answers = {task_answer("The task, cancelled or being cancelled.")},
          .errors = {404, 409}};
}

Job new_set_up(const std::string& project_id, model::Timestamp now) {
  return {.id = model::new_id(),
          .project_id = project_id,
          .type = std::string(model::proactive_setup),
          .name = "Set-up of proactive follow-up",
          .total_steps = static_cast<int>(model::proactive_setup_steps.size()),
          .created_at = now,
          .changed_at = now};
}

// The answer if the job can't be created.
Result<Response> not_created(const model::Error& error, const char* conflict, const Call& call,
                             model::Timestamp now) {
  // The store's message of a conflict is the other job's id.
  if (error.code != Errc::conflict || !model::is_id(error.message)) {
    return model::fail(store_error(error));
  }
  const nlohmann::json details{{"taskId", error.message}};
  return error_response(409, conflict, call.exchange, now, ErrorShape::problem, &details);
}

Result<Response> set_up_proactive(const Call& call, ProjectServices& services) {
  auto project = path_project(services.store, call);
  if (!project) return model::fail(project.error());
  if (!services.options.proactive.enabled) {
    return model::fail(Errc::not_supported, "proactive follow-up is switched off");
  }
  auto key = append_key(call.request, project->organisation_id, "setUpProactive " + project->id);
  if (!key) return model::fail(key.error());
  const Job job = new_set_up(project->id, services.clock.now());
  Response answer =
      job_response(call.request, services, call.exchange.instance, job, status::created);
  store::Jobs::Creation creation{
      .organisation_id = project->organisation_id,
      .max_per_month = static_cast<std::int64_t>(services.options.quota.get().jobs_per_month)};
  if (*key) {
    creation.keyed =
        store::KeyedAnswer{answer_key(**key), {answer.status, answer.content_type, answer.body}};
  }

  auto earlier = services.store.jobs().create(job, creation);
  if (!earlier) {
    return not_created(earlier.error(), "the project is being set up, or is set up already", call,
                       services.clock.now());
  }
  if (!*earlier) {
    answer.headers.emplace_back("Location", task_path(job, call.request, services));
    return answer;
  }
  return Response{.status = (*earlier)->status,
                  .content_type = std::move((*earlier)->content_type),
                  .headers = std::move(answer.headers),
                  .body = std::move((*earlier)->body)};
}

Description describe_set_up_proactive() {
  return {.summary = "Set up proactive follow-up",
          .details =
              "Provisions a tenant, creates a journey and generates a follow-up Flow, as a "
              "job. 409 while a set-up runs or after the project is set up, with the job's id "
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

}  // namespace

Result<Response> start_bulk_job(const Call& call, SessionServices& services,
                                const BulkJob& wanted) {
  const auto now = services.clock.now();
  const Job job{.id = model::new_id(),
                .project_id = wanted.project_id,
                .type = std::string(wanted.type),
                .name = wanted.name,
                .data = {{"filter", wanted.filter}, {"by", call.principal->user_id}},
                .created_at = now,
                .changed_at = now};
  if (auto made = services.store.jobs().create(job); !made) {
    return not_created(made.error(), "such a job runs; wait for it or cancel it", call, now);
  }
  return json_response(202, task_shape()(job));
}

Success bulk_job_answer() {
  Success answer = json_answer("The job.", task_shape().schema(), 202);
  answer.links = {{"task", "manageTask", "taskId", "$response.body#/_id"},
                  {"cancel", "manageCancelTask", "taskId", "$response.body#/_id"}};
  return answer;
}

Operations tasks_operations() {
  static constexpr Operation rows[] = {
      for_clients("setUpProactive_2_0", Method::post,
                  "/v2.0/projects/{projectId}/settings/proactive/setup", Role::proactive_admin,
                  set_up_proactive, describe_set_up_proactive),
      for_clients("listTasks_2_0", Method::get, "/v2.0/tasks", Role::member, list_tasks,
                  [] { return describe_list_of("listTasks_2_0"); }),
      for_clients("showTask_2_0", Method::get, "/v2.0/tasks/{taskId}", Role::member, show_task,
                  describe_show_task),
      for_clients("cancelTask_2_0", Method::post, "/v2.0/tasks/{taskId}/cancel",
                  Role::proactive_admin, cancel_task, describe_cancel_task),
      // The operators' routes take a password instead of a key.
      for_operators("manageTasks", Method::get, "/management/tasks", Role::member, list_tasks,
                    [] { return describe_list_of("manageTasks"); }),
      for_operators("manageTask", Method::get, "/management/tasks/{taskId}", Role::member,
                    show_task, describe_show_task),
      or_with(Role::conversation_admin,
              for_operators("manageCancelTask", Method::post, "/management/tasks/{taskId}/cancel",
                            Role::proactive_admin, cancel_task, describe_cancel_task)),
  };
  return rows;
}

}  // namespace conversed::api
