#pragma once

#include <string_view>

#include "api/openapi/shape.h"
#include "api/representation/document.h"
#include "store/model/job.h"

namespace conversed::api {

// A job as the API shows it.
[[nodiscard]] const openapi::Shape<model::Job>& task_shape();

// The same as an answer; `base` is what comes before "/v2.0/" in the client's paths.
[[nodiscard]] Document task_document(const model::Job& job, std::string_view base);

// Where a client finds the job.
[[nodiscard]] std::string task_path(const model::Job& job, std::string_view base);

}  // namespace conversed::api
