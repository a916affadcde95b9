#include "api/operations/task_document.h"

#include <string>

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
