#include "api/operations/task_document.h"

#include <string>
#include <vector>

#include "api/operations/management.h"

namespace conversed::api {

Value task_value(const model::Job& job) {
  const auto step = model::step_name(job);
  return {{"_id", job.id},
          {"status", model::to_string(job.state)},
          {"type", job.type},
          {"progress", job.progress},
          {"name", job.name},
          {"currentStep", job.current_step},
          {"totalStep", job.total_steps},
          {"stepName", step.empty() ? Value(nullptr) : Value(step)},
          {"failReason", job.fail_reason.empty() ? Value(nullptr) : Value(job.fail_reason)},
          {"data", job.data},
          {"createdAt", unix_seconds(job.created_at)},
          {"lastChangedAt", unix_seconds(job.changed_at)}};
}

openapi::Schema task_status() {
  using model::JobState;
  std::vector<std::string_view> names;
  for (const auto state : {JobState::queued, JobState::active, JobState::cancelling, JobState::done,
                           JobState::cancelled, JobState::error}) {
    names.push_back(model::to_string(state));
  }
  return openapi::one_of(names);
}

openapi::Schema task_schema() {
  using namespace openapi;
  return named("Task", object({{"_id", id()},
                               {"status", task_status()},
                               {"type", text(1)},
                               {"progress", integer(0, 100)},
                               {"name", text()},
                               {"currentStep", integer(0)},
                               {"totalStep", integer(0)},
                               {"stepName", nullable(text(1))},
                               {"failReason", nullable(text())},
                               {"data", anything()},
                               {"createdAt", unix_time()},
                               {"lastChangedAt", unix_time()}}));
}

std::string task_path(const model::Job& job, std::string_view base) {
  return std::string(base) + "/v2.0/tasks/" + job.id;
}

Document task_document(const model::Job& job, std::string_view base) {
  return {.name = "task",
          .value = task_value(job),
          .list = std::nullopt,
          .links = {.self = task_path(job, base), .next = {}, .previous = {}}};
}

}  // namespace conversed::api
