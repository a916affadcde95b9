#pragma once

#include <string_view>

#include "api/openapi/schemas.h"
#include "api/representation/document.h"
#include "store/model/job.h"

namespace conversed::api {

// A job as the API shows it.
[[nodiscard]] Value task_value(const model::Job& job);

// What task_value makes, and its `status`.
[[nodiscard]] openapi::Schema task_schema();
[[nodiscard]] openapi::Schema task_status();

// The same as an answer; `base` is what comes before "/v2.0/" in the client's paths.
[[nodiscard]] Document task_document(const model::Job& job, std::string_view base);

// Where a client finds the job.
[[nodiscard]] std::string task_path(const model::Job& job, std::string_view base);

}  // namespace conversed::api
