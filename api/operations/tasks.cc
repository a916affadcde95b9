#include "api/operations/tasks.h"

// /v2.0/tasks: jobs are listed, watched and cancelled.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/live/pending_replies.h"
#include "api/openapi/description.h"
#include "api/operations/documents.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "api/representation/input.h"
#include "store/store.h"

namespace conversed::api {

openapi::Schema task_status() {
  using model::JobState;
  std::vector<std::string_view> names;
  for (const auto state : {JobState::queued, JobState::active, JobState::cancelling, JobState::done,
                           JobState::cancelled, JobState::error}) {
    names.push_back(model::to_string(state));
  }
  return openapi::one_of(names);
}

const openapi::Shape<model::Job>& task_shape() {
  using namespace openapi;
  using model::Job;
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
       {"data", anything(), &Job::data},
       {"createdAt", unix_time(), &Job::created_at},
       {"lastChangedAt", unix_time(), &Job::changed_at}});
  return shape;
}

std::string task_path(const model::Job& job, std::string_view base) {
  return std::string(base) + "/v2.0/tasks/" + job.id;
}

Document task_document(const model::Job& job, std::string_view base) {
  return {.name = "task",
          .value = task_shape()(job),
          .list = std::nullopt,
          .links = {.self = task_path(job, base), .next = {}, .previous = {}}};
}

namespace {

using model::Errc;
using model::Job;
using model::Result;

constexpr ListForm task_list{.root = "tasks", .item = "item"};
constexpr std::string_view missing_task = "there is no such task";

Result<Job> find_job(ProjectServices& services, const std::string& id) {
  auto job = services.store.jobs().get(id);
  if (!job && job.error().code == Errc::not_found) {
    return model::fail(Errc::not_found, std::string(missing_task));
  }
  if (!job) return model::fail(store_error(job.error()));
  return job;
}

// The job that the path names, for a principal with the role in its project.
Result<Job> open_job(const Call& call, ProjectServices& services, Role role) {
  auto id = id_of(call, "taskId");
  if (!id) return model::fail(id.error());
  auto job = find_job(services, *id);
  if (!job) return job;
  auto project = open_project(services.store, *call.principal, job->project_id, role, missing_task);
  if (!project) return model::fail(project.error());
  return job;
}

Response job_response(const Request& request, const std::string& instance, const Job& job) {
  return document_response(request, instance, status::ok, task_document(job, base_of(instance)));
}

void send_job(Reply& reply, const Request& request, const Job& job) {
  reply.send(job_response(request, reply.context().instance, job));
}

bool has_news(const Job& seen, const Job& now) {
  return seen.state != now.state || seen.progress != now.progress;
}

// A client that waits for news of a job. Whoever finds some, or the deadline, answers.
class TaskPoll : public std::enable_shared_from_this<TaskPoll> {
 public:
  using TimePoint = KeyWatch::TimePoint;

  TaskPoll(Request request, ProjectServices& services, Reply reply, Job seen, TimePoint deadline)
      : request_(std::move(request)),
        services_(services),
        reply_(std::move(reply)),
        seen_(std::move(seen)),
        deadline_(deadline) {}

  // Watching before looking: a change in between is noticed.
  void wait() {
    const auto ticket = services_.job_watch.watch(
        seen_.id, deadline_, [self = shared_from_this()](WatchEnd why) { self->look(why); });
    auto job = find_job(services_, seen_.id);
    if (job && !has_news(seen_, *job)) return;
    if (services_.job_watch.cancel(ticket)) answer(job);
  }

 private:
  // Called by the watch. A change may be of something else than status and progress.
  void look(WatchEnd why) {
    if (why == WatchEnd::stopped) return answer(seen_);
    auto job = find_job(services_, seen_.id);
    if (why == WatchEnd::deadline || !job || has_news(seen_, *job)) return answer(job);
    wait();
  }

  void answer(const Result<Job>& job) {
    if (!job) return reply_.fail(job.error());
    send_job(reply_, request_, *job);
  }

  const Request request_;
  ProjectServices& services_;
  Reply reply_;
  const Job seen_;
  const TimePoint deadline_;
};

void show_task(Call call, ProjectServices& services, Reply reply) {
  auto wait = wait_parameter(call.request);
  if (!wait) return reply.fail(wait.error());
  auto job = open_job(call, services, Role::member);
  if (!job) return reply.fail(job.error());
  if (*wait == 0 || model::is_final(job->state)) return send_job(reply, call.request, *job);
  const auto deadline = services.options.steady_now() + std::chrono::seconds(*wait);
  std::make_shared<TaskPoll>(std::move(call.request), services, std::move(reply), std::move(*job),
                             deadline)
      ->wait();
}

// The projects whose jobs are listed: that of the query, or all that the principal is a member of.
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
  auto projects = read_projects(call, services);
  if (!projects) return model::fail(projects.error());
  filter.project_ids = *std::move(projects);
  auto page = services.store.jobs().list(filter, *request);
  if (!page) return model::fail(store_error(page.error()));
  return page_response(call, task_list, *std::move(page), task_shape());
}

Result<Response> cancel_task(const Call& call, ProjectServices& services) {
  auto job = open_job(call, services, Role::proactive_admin);
  if (!job) return model::fail(job.error());
  auto cancelled = services.store.jobs().cancel(job->id);
  if (!cancelled && cancelled.error().code == Errc::conflict) {
    return model::fail(Errc::conflict, "the task is over");
  }
  if (!cancelled) return model::fail(store_error(cancelled.error()));
  return job_response(call.request, call.exchange.instance, *cancelled);
}

openapi::Answer task_answer(std::string description) {
  return {.description = std::move(description),
          .content = openapi::representations("task", task_shape().schema())};
}

openapi::Description describe_list_of(std::string_view operation) {
  using namespace openapi;
  auto parameters = page_parameters(store::Jobs::sort_fields());
  parameters.push_back(query_parameter("status", "Only tasks of this status.", task_status()));
  parameters.push_back(query_parameter("projectId", "Only tasks of this project.", id()));
  return {.summary = "List tasks",
          .parameters = std::move(parameters),
          .answers = {list_answer(operation, "A page of them, the newest first.", task_list,
                                  task_shape().schema())},
          .errors = {404}};
}

openapi::Description describe_list_tasks() {
  return describe_list_of("listTasks_2_0");
}

openapi::Description describe_show_task() {
  return {.summary = "Get a task",
          .parameters = {openapi::wait_until("a change of its status or progress")},
          .answers = {task_answer("The task.")},
          .errors = {404}};
}

openapi::Description describe_cancel_task() {
  return {.summary = "Cancel a task",
          .answers = {task_answer("The task, cancelled or being cancelled.")},
          .errors = {404, 409}};
}

openapi::Description describe_managed_list() {
  return describe_list_of("manageTasks");
}

}  // namespace

Operations tasks_operations() {
  static constexpr Operation rows[] = {
      for_clients("listTasks_2_0", Method::get, "/v2.0/tasks", Role::member, list_tasks,
                  describe_list_tasks),
      for_clients("showTask_2_0", Method::get, "/v2.0/tasks/{taskId}", Role::member, show_task,
                  describe_show_task),
      for_clients("cancelTask_2_0", Method::post, "/v2.0/tasks/{taskId}/cancel",
                  Role::proactive_admin, cancel_task, describe_cancel_task),
      // The same for operators, with a password in place of a key.
      for_operators("manageTasks", Method::get, "/management/tasks", Role::member, list_tasks,
                    describe_managed_list),
      for_operators("manageTask", Method::get, "/management/tasks/{taskId}", Role::member,
                    show_task, describe_show_task),
      for_operators("manageCancelTask", Method::post, "/management/tasks/{taskId}/cancel",
                    Role::proactive_admin, cancel_task, describe_cancel_task),
  };
  return rows;
}

}  // namespace conversed::api
